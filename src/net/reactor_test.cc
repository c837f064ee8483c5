// SPDX-License-Identifier: Apache-2.0
#include "net/reactor.h"

#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/no_wait.h"

namespace nereid::net {
namespace {

TEST(Reactor, KnowsItsThread) {
  ReactorPool pool(2);
  EXPECT_EQ(nullptr, Reactor::Current());
  EXPECT_FALSE(base::NoWaitScope::IsHere());
  std::latch done(2);
  for (size_t i = 0; i < 2; ++i) {
    pool.reactor(i).Post([&, i] {
      EXPECT_EQ(&pool.reactor(i), Reactor::Current());
      EXPECT_TRUE(base::NoWaitScope::IsHere());
      done.count_down();
    });
  }
  done.wait();
}

TEST(Reactor, RunsPostsOfOneThreadInOrder) {
  ReactorPool pool(1);
  std::vector<int> seen;
  std::latch done(1);
  for (int i = 0; i < 1000; ++i) pool.reactor(0).Post([&seen, i] { seen.push_back(i); });
  pool.reactor(0).Post([&] { done.count_down(); });
  done.wait();
  ASSERT_EQ(1000u, seen.size());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(i, seen[static_cast<size_t>(i)]);
}

TEST(Reactor, TakesPostsFromManyThreads) {
  ReactorPool pool(1);
  int count = 0;  // confined to the reactor
  std::latch done(4 * 2000);
  std::vector<base::Thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back("poster", [&] {
      for (int i = 0; i < 2000; ++i) {
        pool.reactor(0).Post([&] {
          ++count;
          done.count_down();
        });
      }
    });
  }
  done.wait();
  threads.clear();
  EXPECT_EQ(8000, count);
}

TEST(Reactor, RunsAfterRoundFollowsReadyEvents) {
  ReactorPool pool(1);
  std::string order;
  std::latch done(1);
  Reactor& reactor = pool.reactor(0);
  reactor.Post([&] {
    reactor.RunAfterRound([&] {
      order += 'c';
      reactor.RunAfterRound([&] {
        order += 'e';
        done.count_down();
      });
    });
    reactor.RunAfterRound([&] { order += 'd'; });
    order += 'a';
  });
  done.wait();
  EXPECT_EQ("acde", order);
}

TEST(Timer, CallsOnceUnlessCancelledOrReplaced) {
  ReactorPool pool(1);
  Reactor& reactor = pool.reactor(0);
  std::latch done(1);
  std::string calls;
  std::unique_ptr<Timer> timers[3];
  reactor.Post([&] {
    for (auto& timer : timers) timer = std::make_unique<Timer>(reactor);
    timers[0]->Start(std::chrono::milliseconds(1), [&] { calls += "cancelled"; });
    timers[0]->Cancel();
    timers[1]->Start(std::chrono::milliseconds(1), [&] { calls += "replaced"; });
    timers[1]->Start(std::chrono::milliseconds(2), [&] { calls += 'a'; });
    timers[2]->Start(std::chrono::milliseconds(20), [&] {
      calls += 'b';
      for (auto& timer : timers) timer.reset();
      done.count_down();
    });
  });
  done.wait();
  EXPECT_EQ("ab", calls);
}

TEST(ReactorPool, SpreadsConnections) {
  ReactorPool pool(3);
  pool.reactor(0).AddConnection();
  EXPECT_EQ(1u, pool.LeastLoaded().index());
  pool.reactor(1).AddConnection();
  EXPECT_EQ(2u, pool.LeastLoaded().index());
}

}  // namespace
}  // namespace nereid::net
