// SPDX-License-Identifier: Apache-2.0
#include "python_backend/wait.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace nereid::python {
namespace {

using Clock = std::chrono::steady_clock;
using Word = std::atomic<uint32_t>;
using std::chrono::nanoseconds;

TEST(Wait, EndsAtOnceWhereTheWordHasChanged) {
  Word word{5};
  Word sleeping{0};
  EXPECT_EQ(WaitWhile(word, sleeping, 4, nanoseconds(0)), 5u);
  EXPECT_EQ(LookWhile(word, 4, nanoseconds(0)), 5u);
  EXPECT_EQ(sleeping.load(), 0u);
}

TEST(Wait, EndsAtItsDeadline) {
  Word word{5};
  Word sleeping{0};
  EXPECT_EQ(WaitWhile(word, sleeping, 5, nanoseconds(0), Clock::now()), 5u);
  EXPECT_EQ(WaitWhile(word, sleeping, 5, nanoseconds(0), Clock::now() + nanoseconds(1000)), 5u);
  EXPECT_EQ(LookWhile(word, 5, nanoseconds(1000)), 5u);
}

TEST(Wait, EndsByASignalToAThreadThatSleeps) {
  Word word{5};
  Word sleeping{0};
  auto waits = std::async(std::launch::async, [&] {
    uint32_t value = 5;
    while (value == 5) value = WaitWhile(word, sleeping, 5, nanoseconds(0));
    return value;
  });
  while (sleeping.load() == 0) std::this_thread::yield();
  Signal(word, sleeping);
  EXPECT_EQ(waits.get(), 6u);
}

TEST(Wait, EndsByAValueThatIsPublished) {
  Word word{1};
  Word sleeping{0};
  auto waits = std::async(std::launch::async, [&] {
    uint32_t value = 1;
    while (value == 1) value = WaitWhile(word, sleeping, 1, nanoseconds(0));
    return value;
  });
  Publish(word, sleeping, 2);
  EXPECT_EQ(waits.get(), 2u);
}

// Two threads that take turns: no signal is lost, whichever thread is about to sleep.
TEST(Wait, LosesNoSignal) {
  Word ping{0}, pong{0}, ping_sleeps{0}, pong_sleeps{0};
  constexpr uint32_t kTurns = 20000;
  const auto await = [](Word& word, Word& sleeping, uint32_t seen) {
    while (WaitWhile(word, sleeping, seen, nanoseconds(0)) == seen) {
    }
  };
  auto other = std::async(std::launch::async, [&] {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      await(ping, ping_sleeps, turn);
      Signal(pong, pong_sleeps);
    }
  });
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    Signal(ping, ping_sleeps);
    await(pong, pong_sleeps, turn);
  }
  other.get();
  EXPECT_EQ(pong.load(), kTurns);
}

}  // namespace
}  // namespace nereid::python
