// SPDX-License-Identifier: Apache-2.0
#include "loadgen/poller.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>

#include <gtest/gtest.h>

namespace nereid::loadgen {
namespace {

constexpr int kForever = -1;

// Two sockets that are connected with each other.
struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    one = base::UniqueFd(ends[0]);
    other = base::UniqueFd(ends[1]);
  }
  base::UniqueFd one;
  base::UniqueFd other;
};

// What a wait reported: the events of each user.
std::map<void*, uint32_t> Wait(Poller& poller, int timeout_ms) {
  std::map<void*, uint32_t> ready;
  poller.Wait(timeout_ms, [&](void* user, uint32_t events) { ready[user] |= events; });
  return ready;
}

void Write(const base::UniqueFd& fd) { ASSERT_EQ(write(fd.get(), "x", 1), 1); }

TEST(Poller, ReportsTheSocketsThatCanBeReadAndNoOthers) {
  Poller poller;
  Pair pairs[300];  // more than one wait reports
  for (Pair& pair : pairs) poller.Add(pair.one.get(), &pair);
  EXPECT_TRUE(Wait(poller, 0).empty());
  for (int i = 0; i < 300; i += 7) Write(pairs[i].other);
  const auto ready = Wait(poller, kForever);
  EXPECT_EQ(ready.size(), 43U);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(ready.contains(&pairs[i]), i % 7 == 0) << i;
  }
}

TEST(Poller, GetsRoundToAllSocketsWhenMoreAreReadyThanOneWaitReports) {
  Poller poller;
  Pair pairs[300];
  for (Pair& pair : pairs) {
    poller.Add(pair.one.get(), &pair);
    Write(pair.other);
  }
  size_t seen = 0;
  while (seen < 300) {
    const auto ready = Wait(poller, 0);
    ASSERT_FALSE(ready.empty());
    for (const auto& [user, events] : ready) {
      char byte = 0;
      ASSERT_EQ(read(static_cast<Pair*>(user)->one.get(), &byte, 1), 1);
      ++seen;
    }
  }
  EXPECT_TRUE(Wait(poller, 0).empty());
}

TEST(Poller, ReportsWritableSocketsOnlyWhileTheyAreWanted) {
  Poller poller;
  Pair pair;
  poller.Add(pair.one.get(), &pair);
  EXPECT_TRUE(Wait(poller, 0).empty());
  poller.WantWrite(pair.one.get(), &pair, true);
  EXPECT_EQ(Wait(poller, 0)[&pair], EPOLLOUT);
  Write(pair.other);
  EXPECT_EQ(Wait(poller, 0)[&pair], EPOLLOUT | EPOLLIN);
  poller.WantWrite(pair.one.get(), &pair, false);
  EXPECT_EQ(Wait(poller, 0)[&pair], EPOLLIN);
}

TEST(Poller, ReportsAnEndThatWentAway) {
  Poller poller;
  Pair pair;
  poller.Add(pair.one.get(), &pair);
  pair.other.Close();
  EXPECT_NE(Wait(poller, kForever)[&pair] & EPOLLHUP, 0U);
}

TEST(Poller, ForgetsClosedSocketsEvenIfTheirNumberIsUsedAgain) {
  Poller poller;
  Pair pair;
  poller.Add(pair.one.get(), &pair);
  Write(pair.other);
  pair.one.Close();
  EXPECT_TRUE(Wait(poller, 0).empty());
  Pair next;
  poller.Add(next.one.get(), &next);
  Write(next.other);
  EXPECT_EQ(Wait(poller, kForever).size(), 1U);
}

TEST(Poller, WakesUpAtTheTimeWithoutReportingASocket) {
  Poller poller;
  const base::TimePoint soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  poller.WakeAt(soon);
  EXPECT_TRUE(Wait(poller, kForever).empty());
  EXPECT_GE(std::chrono::steady_clock::now(), soon);
}

TEST(Poller, WakesUpAtOnceForATimeThatHasPassed) {
  const base::TimePoint now = std::chrono::steady_clock::now();
  // The machine may have started less than an hour ago, and certainly later than in 1700.
  for (const base::TimePoint time :
       {now - std::chrono::milliseconds(1), now - std::chrono::hours(1), base::TimePoint(),
        base::TimePoint::min()}) {
    Poller poller;
    poller.WakeAt(time);
    EXPECT_TRUE(Wait(poller, kForever).empty());
  }
}

TEST(Poller, WakesUpAtTheTimeThatWasSetLast) {
  Poller poller;
  const base::TimePoint now = std::chrono::steady_clock::now();
  poller.WakeAt(now + std::chrono::hours(1));
  poller.WakeAt(now + std::chrono::milliseconds(1));
  EXPECT_TRUE(Wait(poller, kForever).empty());
  // Each time wakes up once.
  poller.WakeAt(now + std::chrono::milliseconds(2));
  EXPECT_TRUE(Wait(poller, kForever).empty());
}

}  // namespace
}  // namespace nereid::loadgen
