// SPDX-License-Identifier: Apache-2.0
#include "schedule/rate_limiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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

  RateLimiter limiter_{{}};
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

std::string RefusalOfAll(RateLimiter& limiter, std::vector<config::RateLimiter::Resource> needs,
                         int32_t device = 0) {
  const auto claim = limiter.Register({.needs = {.resources = std::move(needs)}, .device = device});
  return claim.ok() ? "" : std::string(claim.status().message());
}

std::string Refusal(RateLimiter& limiter, config::RateLimiter::Resource need, int32_t device = 0) {
  return RefusalOfAll(limiter, {std::move(need)}, device);
}

TEST(RateLimiterNeeds, OfOneInstanceCannotBeOfBothKindsEither) {
  RateLimiter limiter{{}};
  const std::string refusal =
      "Resource \"x\" is present as both global and device-specific resource in the model "
      "configuration.";
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", false, 1}, {"y", false, 1}, {"x", true, 1}}), refusal);
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 0}, {"x", false, 0}}), refusal);
  EXPECT_EQ(RefusalOfAll(limiter, {{"x", true, 1}}), "") << "the other kind was left behind";
}

//
TEST(RateLimiterNeeds, OfOneResourceAddUp) {
  RateLimiter limiter{{{kGlobalResource, {{"x", 3}}}}};
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
  RateLimiter limiter{{{kEachDeviceResource, {{"each", 2}}}, {3, {{"each", 4}, {"third", 1}}}}};
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
  RateLimiter limiter{{{kEachDeviceResource, {{"x", 2}}}, {3, {{"x", 4}}}}};
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

}  // namespace
}  // namespace nereid::schedule
