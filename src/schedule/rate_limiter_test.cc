// SPDX-License-Identifier: Apache-2.0
#include "schedule/rate_limiter.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "schedule/testing/waiting_claim.h"

namespace nereid::schedule {
namespace {

class RateLimiterTest : public testing::Test {
 protected:
  std::unique_ptr<RateLimiter::Claim> Claim(std::vector<config::RateLimiter::Resource> needs,
                                            uint32_t priority = 0, int32_t device = 0) {
    const size_t index = granted_.size();
    granted_.push_back(0);
    auto claim = limiter_.Register({.needs = {.resources = std::move(needs), .priority = priority},
                                    .device = device,
                                    .on_grant = [this, index] { ++granted_[index]; }});
    EXPECT_TRUE(claim.ok()) << claim.status().message();
    return claim.ok() ? std::move(claim).value() : nullptr;
  }

  base::Timers timers_;
  RateLimiter limiter_{{}, timers_, std::chrono::hours(1)};
  std::vector<int> granted_;
};

// R-1; and R-2: nothing limits x and y but the largest need of each.
TEST_F(RateLimiterTest, GivesAllResourcesOrNone) {
  auto a = Claim({{"x", true, 2}, {"y", true, 1}});
  auto b = Claim({{"x", true, 1}});
  auto c = Claim({{"y", true, 1}});
  EXPECT_TRUE(b->TryTake());
  EXPECT_FALSE(a->TryTake());  // one of 2 x is taken; the free y stays free
  b->Give();
  EXPECT_EQ(granted_[0], 1);
  EXPECT_TRUE(a->TryTake());
  EXPECT_FALSE(c->TryTake());
  a->Give();
  EXPECT_EQ(granted_[2], 1);
  EXPECT_TRUE(c->TryTake());
}

TEST_F(RateLimiterTest, NoClaimPassesTheFirstInLine) {
  auto big = Claim({{"x", true, 2}});
  auto small = Claim({{"x", true, 1}}, /*priority=*/2);
  auto holder = Claim({{"x", true, 1}});
  EXPECT_TRUE(small->TryTake());
  small->Give();
  EXPECT_TRUE(holder->TryTake());
  EXPECT_FALSE(big->TryTake());
  // One x is free, but `big` has executed less often.
  EXPECT_FALSE(small->TryTake());
  holder->Give();
  EXPECT_TRUE(big->TryTake());
  EXPECT_EQ(granted_[1], 0);
  big->Give();
  EXPECT_TRUE(small->TryTake());
}

//
TEST_F(RateLimiterTest, OnlyThoseWhoNeedTheSameWaitBehindAClaim) {
  auto holder = Claim({{"x", true, 1}});
  auto both = Claim({{"x", true, 1}, {"y", true, 1}});
  auto needs_y = Claim({{"y", true, 1}});
  auto needs_z = Claim({{"z", true, 1}, {"y", true, 0}});
  auto needs_nothing = Claim({});
  EXPECT_TRUE(holder->TryTake());
  EXPECT_FALSE(both->TryTake());
  EXPECT_FALSE(needs_y->TryTake());
  EXPECT_TRUE(needs_z->TryTake());
  EXPECT_TRUE(needs_nothing->TryTake());
  holder->Give();
  EXPECT_TRUE(both->TryTake());
  EXPECT_FALSE(needs_y->TryTake());
  both->Give();
  EXPECT_TRUE(needs_y->TryTake());
}

TEST_F(RateLimiterTest, SharesByPriority) {
  auto often = Claim({{"x", true, 1}}, 1);
  auto seldom = Claim({{"x", true, 1}}, 3);
  int often_count = 0, seldom_count = 0;
  // Both claims always want to run.
  for (int i = 0; i < 400; ++i) {
    const bool often_runs = often->TryTake();
    const bool seldom_runs = seldom->TryTake();
    ASSERT_NE(often_runs, seldom_runs);
    (often_runs ? often_count : seldom_count) += 1;
    (often_runs ? often : seldom)->Give(/*wants_more=*/true);
  }
  EXPECT_NEAR(often_count, 300, 5);
  EXPECT_NEAR(seldom_count, 100, 5);
}

TEST_F(RateLimiterTest, TakesTurnsInTheOrderOfTriton) {
  auto a = Claim({{"x", true, 1}}, 1);
  auto b = Claim({{"x", true, 1}}, 2);
  std::string order;
  for (int i = 0; i < 9; ++i) {
    const bool a_runs = a->TryTake();
    EXPECT_NE(b->TryTake(), a_runs);
    order += a_runs ? "A" : "B";
    (a_runs ? a : b)->Give(/*wants_more=*/true);
  }
  EXPECT_EQ(order, "AABAABAAB");
}

TEST_F(RateLimiterTest, CountsResourcesOfEachDeviceApart) {
  auto a = Claim({{"x", false, 1}}, 0, 0);
  auto b = Claim({{"x", false, 1}}, 0, 1);
  EXPECT_TRUE(a->TryTake());
  EXPECT_TRUE(b->TryTake());
}

TEST_F(RateLimiterTest, RefusesAResourceThatIsBothGlobalAndPerDevice) {
  auto global = Claim({{"x", true, 1}});
  const auto both = limiter_.Register({.needs = {.resources = {{"x", false, 1}}}});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.status().message(),
            "Resource \"x\" is present as both global and device-specific resource in the model "
            "configuration.");
}

TEST_F(RateLimiterTest, CountsAResourceOfTheOtherKindApartWhileAClaimLeaves) {
  auto leaving = Claim({{"x", true, 1}});
  leaving->SetLeaving(true);
  leaving->SetLeaving(true);
  auto other = Claim({{"x", false, 1}});
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(leaving->TryTake());
  EXPECT_TRUE(other->TryTake());
  const config::RateLimiter::Resource global{"x", true, 1};
  EXPECT_FALSE(limiter_.Register({.needs = {.resources = {global}}}).ok()) << "the other one stays";
  leaving.reset();
  EXPECT_FALSE(limiter_.Register({.needs = {.resources = {global}}}).ok());
  other->SetLeaving(true);
  auto next = Claim({global});
  other->SetLeaving(false);
  other.reset();
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(next->TryTake());
}

std::string RefusalOfAll(RateLimiter& limiter, std::vector<config::RateLimiter::Resource> needs,
                         int32_t device = 0) {
  const auto claim = limiter.Register({.needs = {.resources = std::move(needs)}, .device = device});
  return claim.ok() ? "" : std::string(claim.status().message());
}

std::string Refusal(RateLimiter& limiter, config::RateLimiter::Resource need, int32_t device = 0) {
  return RefusalOfAll(limiter, {std::move(need)}, device);
}

TEST(RateLimiterNeeds, OfOneInstanceCannotBeOfBothKindsEither) {
  base::Timers timers;
  RateLimiter limiter{{}, timers};
  const std::string refusal =
      "Resource \"x\" is present as both global and device-specific resource in the model "
      "configuration.";
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", false, 1}, {"y", false, 1}, {"x", true, 1}}), refusal);
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 0}, {"x", false, 0}}), refusal);
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 1}}), "") << "the other kind was left behind";
}

//
TEST(RateLimiterNeeds, OfOneResourceAddUp) {
  base::Timers timers;
  RateLimiter limiter{{{kGlobalResource, {{"x", 3}}}}, timers};
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 2}, {"x", true, 2}}),
            "Resource count for \"x\" is limited to 3 which will prevent scheduling of one or more "
            "model instances, the minimum required count is 4");
  EXPECT_NE(RefusalOfAll(limiter, {{"x", true, UINT32_MAX}, {"x", true, 2}}), "");
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 1}, {"x", true, 2}}), "");
}

TEST_F(RateLimiterTest, TakesTheSumOfWhatAnInstanceNeedsOfAResource) {
  auto both = Claim({{"x", true, 1}, {"x", true, 2}});
  auto two = Claim({{"x", true, 2}});
  auto one = Claim({{"x", true, 1}});
  EXPECT_TRUE(both->TryTake());
  EXPECT_FALSE(one->TryTake());
  both->Give();
  EXPECT_TRUE(one->TryTake());
  EXPECT_TRUE(two->TryTake());
  EXPECT_FALSE(both->TryTake());
}

//
TEST(RateLimiterLimits, RefuseWhatCanNeverRun) {
  base::Timers timers;
  RateLimiter limiter{{{kEachDeviceResource, {{"each", 2}}}, {3, {{"each", 4}, {"third", 1}}}},
                      timers};
  EXPECT_EQ(Refusal(limiter, {"each", false, 3}),
            "Resource count for \"each\" is limited to 2 which will prevent scheduling of one or "
            "more model instances, the minimum required count is 3");
  EXPECT_EQ(Refusal(limiter, {"each", false, 2}), "");
  // The larger number applies to a device with its own count.
  EXPECT_EQ(Refusal(limiter, {"each", false, 4}, 3), "");
  EXPECT_EQ(Refusal(limiter, {"third", false, 1}, 3), "");
  EXPECT_EQ(Refusal(limiter, {"third", false, 1}),
            "Resource count for \"third\" is limited to 0 which will prevent scheduling of one or "
            "more model instances, the minimum required count is 1");
  EXPECT_NE(Refusal(limiter, {"other", false, 1}), "");
}

TEST(RateLimiterLimits, OfOneForAllDevicesAreTheLargestOfAnyDevice) {
  base::Timers timers;
  RateLimiter limiter{{{kEachDeviceResource, {{"x", 2}}}, {3, {{"x", 4}}}}, timers};
  EXPECT_EQ(Refusal(limiter, {"x", true, 4}), "");
  EXPECT_NE(Refusal(limiter, {"x", true, 5}), "");
}

// what a larger need adds is available to a claim that waits.
TEST_F(RateLimiterTest, ALargerNeedOfAnotherLetsTheFirstInLineIn) {
  auto a = Claim({{"x", true, 1}});
  auto b = Claim({{"x", true, 1}});
  EXPECT_TRUE(a->TryTake());
  EXPECT_FALSE(b->TryTake());
  auto c = Claim({{"x", true, 2}});
  EXPECT_EQ(granted_[1], 1);
  EXPECT_TRUE(b->TryTake());
}

TEST_F(RateLimiterTest, AClaimThatGoesLetsTheNextOneIn) {
  auto a = Claim({{"x", true, 1}});
  auto b = Claim({{"x", true, 1}});
  EXPECT_TRUE(a->TryTake());
  EXPECT_FALSE(b->TryTake());
  a.reset();
  EXPECT_EQ(granted_[1], 1);
  EXPECT_TRUE(b->TryTake());
}

// --- Patience ---

class RateLimiterPatience : public testing::Test {
 protected:
  base::Timers timers_;
  RateLimiter limiter_{
      {{kGlobalResource, {{"x", 4}, {"y", 2}, {"z", 2}}}}, timers_, std::chrono::milliseconds(1)};
};

TEST_F(RateLimiterPatience, LetsAModelThatIsAskedPassTheOneThatWaitsForWhoAsks) {
  WaitingClaim asks(limiter_, {{"x", true, 2}});
  WaitingClaim first(limiter_, {{"x", true, 3}});
  WaitingClaim asked(limiter_, {{"x", true, 1}});
  asks.Take();
  EXPECT_FALSE(first.claim().TryTake());
  std::atomic<bool> is_over{false};
  std::thread busy([&] {
    WaitingClaim other(limiter_, {{"y", true, 1}});
    while (!is_over) {
      other.Take();
      other.claim().Give();
    }
  });
  for (int i = 0; i < 100; ++i) {
    asked.Take();
    asked.claim().Give();
  }
  is_over = true;
  busy.join();
  EXPECT_TRUE(first.claim().is_waiting());
  asks.claim().Give();
  first.Take();
}

TEST_F(RateLimiterPatience, EndsForExecutionsThatLastLonger) {
  WaitingClaim first(limiter_, {{"x", true, 4}});
  base::Mutex mutex;
  base::CondVar changed;
  bool is_over = false;
  int started = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      WaitingClaim small(limiter_, {{"x", true, 1}});
      for (bool goes_on = true; goes_on;) {
        small.Take();
        {
          base::MutexLock lock(mutex);
          ++started;
          changed.NotifyAll();
          const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
          while (!is_over && changed.WaitUntil(mutex, end)) {
          }
          goes_on = !is_over;
        }
        small.claim().Give();
      }
    });
  }
  {
    base::MutexLock lock(mutex);
    while (started < 4) changed.Wait(mutex);
  }
  first.Take();
  {
    base::MutexLock lock(mutex);
    is_over = true;
    changed.NotifyAll();
  }
  first.claim().Give();
  for (std::thread& other : others) other.join();
}

// Models ask others, but never in a circle; further ones need what several of them hold.
class RateLimiterStorm : public RateLimiterPatience, public testing::WithParamInterface<unsigned> {
 protected:
  using Levels = std::array<std::unique_ptr<WaitingClaim>, 3>;

  // Lets the others get in between.
  static void Execute() {
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
  }
  void Run(Levels& models, size_t level, std::mt19937& random) {
    models[level]->Take();
    Execute();
    if (level + 1 < models.size() && random() % 4 != 0) Run(models, level + 1, random);
    models[level]->claim().Give();
  }
};

TEST_P(RateLimiterStorm, EverybodyHasItsTurn) {
  std::vector<std::future<void>> threads;
  for (unsigned i = 0; i < 8; ++i) {
    threads.push_back(std::async(std::launch::async, [this, i] {
      std::mt19937 random(GetParam() * 8 + i);
      const auto count = [&random] { return 1 + static_cast<uint32_t>(random() % 2); };
      if (i < 2) {
        WaitingClaim model(limiter_, {{"x", true, 2 + count()}, {"z", true, count()}});
        for (int turn = 0; turn < 10; ++turn) {
          model.Take();
          Execute();
          model.claim().Give();
        }
        return;
      }
      Levels models;
      for (size_t level = 0; level < models.size(); ++level) {
        const std::string name(1, static_cast<char>('x' + level));
        models[level] = std::make_unique<WaitingClaim>(
            limiter_, std::vector<config::RateLimiter::Resource>{{name, true, count()}});
      }
      for (int turn = 0; turn < 40; ++turn) Run(models, 0, random);
    }));
  }
  for (std::future<void>& thread : threads) {
    if (thread.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
      ADD_FAILURE() << "an instance waits for ever";
      std::abort();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RateLimiterStorm, testing::Range(0u, 20u));

}  // namespace
}  // namespace nereid::schedule
