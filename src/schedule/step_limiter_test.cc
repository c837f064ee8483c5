// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_limiter.h"

#include <deque>
#include <functional>
#include <string>

#include <gtest/gtest.h>

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

TEST(StepLimiter, GivesPlacesUpToTheLimit) {
  StepLimiter limiter(2);
  Waiter waiters[3];
  EXPECT_TRUE(limiter.Acquire(waiters[0]));
  EXPECT_TRUE(limiter.Acquire(waiters[1]));
  EXPECT_FALSE(limiter.Acquire(waiters[2]));
  EXPECT_EQ(0, waiters[2].places);
}

TEST(StepLimiter, PassesAPlaceOnInTheOrderOfWaiting) {
  std::string order;
  StepLimiter limiter(1);
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

TEST(StepLimiter, ForgetsAWaiterThatLeavesTheLine) {
  StepLimiter limiter(1);
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

TEST(StepLimiter, PassesALongChainOfPlacesOnWithoutRecursion) {
  constexpr int kWaiters = 1000;
  StepLimiter limiter(1);
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

}  // namespace
}  // namespace nereid::schedule
