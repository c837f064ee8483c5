// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_limiter.h"

#include <deque>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/no_wait.h"

namespace nereid::schedule {
namespace {

struct Waiter final : StepLimiter::Waiter {
  explicit Waiter(std::function<void()> function = {}) : on_place(std::move(function)) {}
  void OnPlace() override {
    ++places;
    if (on_place) on_place();
  }

  std::function<void()> on_place;
  int places = 0;
};

class StepLimiterTest : public testing::Test {
 protected:
  base::Timers timers_;
};

TEST_F(StepLimiterTest, GivesPlacesUpToTheLimit) {
  StepLimiter limiter(2, timers_);
  Waiter waiters[3];
  EXPECT_TRUE(limiter.Acquire(waiters[0]));
  EXPECT_TRUE(limiter.Acquire(waiters[1]));
  EXPECT_FALSE(limiter.Acquire(waiters[2]));
  EXPECT_EQ(0, waiters[2].places);
}

TEST_F(StepLimiterTest, PassesAPlaceOnInTheOrderOfWaiting) {
  std::string order;
  StepLimiter limiter(1, timers_);
  Waiter holder;
  Waiter a([&] { order += 'a'; });
  Waiter b([&] { order += 'b'; });
  ASSERT_TRUE(limiter.Acquire(holder));
  ASSERT_FALSE(limiter.Acquire(a));
  ASSERT_FALSE(limiter.Acquire(b));
  limiter.Release();
  EXPECT_EQ("a", order);
  limiter.Release();
  EXPECT_EQ("ab", order);
  limiter.Release();
  EXPECT_TRUE(limiter.Acquire(holder)) << "nobody waits, so the place is free";
}

TEST_F(StepLimiterTest, ForgetsAWaiterThatLeavesTheLine) {
  StepLimiter limiter(1, timers_);
  Waiter waiters[4];
  ASSERT_TRUE(limiter.Acquire(waiters[0]));
  for (int i = 1; i < 4; ++i) ASSERT_FALSE(limiter.Acquire(waiters[i]));
  EXPECT_TRUE(limiter.Remove(waiters[2]));
  EXPECT_FALSE(limiter.Remove(waiters[2]));
  limiter.Release();
  EXPECT_EQ(1, waiters[1].places);
  EXPECT_FALSE(limiter.Remove(waiters[1])) << "it has its place";
  limiter.Release();
  EXPECT_EQ(0, waiters[2].places);
  EXPECT_EQ(1, waiters[3].places);
}

TEST_F(StepLimiterTest, PassesALongChainOfPlacesOnWithoutRecursion) {
  constexpr int kWaiters = 1000;
  StepLimiter limiter(1, timers_);
  int depth = 0;
  int deepest = 0;
  std::deque<Waiter> waiters;
  Waiter holder;
  ASSERT_TRUE(limiter.Acquire(holder));
  for (int i = 0; i < kWaiters; ++i) {
    // Each ends at once, as a step does whose request was cancelled meanwhile.
    ASSERT_FALSE(limiter.Acquire(waiters.emplace_back([&] {
      deepest = std::max(deepest, ++depth);
      limiter.Release();
      --depth;
    })));
  }
  limiter.Release();
  for (const Waiter& waiter : waiters) ASSERT_EQ(1, waiter.places);
  EXPECT_EQ(1, deepest);
}

TEST_F(StepLimiterTest, OthersDeliverThePlacesOfAThreadThatWaits) {
  StepLimiter limiter(1, timers_);
  Waiter holder;
  std::promise<void> delivered;
  Waiter last([&] { delivered.set_value(); });
  bool was_delivered = false;
  // The place goes on before this has returned, and this waits for somebody who needs it.
  Waiter waiting([&] {
    limiter.Release();
    StepLimiter::HandOver();
    was_delivered =
        delivered.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  });
  ASSERT_TRUE(limiter.Acquire(holder));
  ASSERT_FALSE(limiter.Acquire(waiting));
  ASSERT_FALSE(limiter.Acquire(last));
  limiter.Release();
  EXPECT_TRUE(was_delivered);
  EXPECT_EQ(1, last.places);
}

TEST_F(StepLimiterTest, AThreadThatMustNotWaitKeepsItsPlaces) {
  StepLimiter limiter(1, timers_);
  const base::NoWaitScope no_wait;
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id there;
  Waiter holder;
  Waiter first([&] {
    limiter.Release();
    StepLimiter::HandOver();
  });
  Waiter second([&] { there = std::this_thread::get_id(); });
  ASSERT_TRUE(limiter.Acquire(holder));
  ASSERT_FALSE(limiter.Acquire(first));
  ASSERT_FALSE(limiter.Acquire(second));
  limiter.Release();
  EXPECT_EQ(there, here);
}

}  // namespace
}  // namespace nereid::schedule
