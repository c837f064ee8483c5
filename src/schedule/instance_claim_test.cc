// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_claim.h"

#include <gtest/gtest.h>

namespace nereid::schedule {
namespace {

class InstanceClaimTest : public testing::Test {
 protected:
  InstanceClaim Claim(std::function<void()> on_grant = [] {}) {
    auto registered = limiter_.Register(
        {.needs = {.resources = {{"r", true, 1}}, .priority = 1}, .on_grant = std::move(on_grant)});
    EXPECT_TRUE(registered.ok());
    return InstanceClaim(std::move(registered).value());
  }

  base::Timers timers_;
  RateLimiter limiter_{{}, timers_};
};

TEST_F(InstanceClaimTest, AnInstanceWithoutALimitMayAlwaysExecute) {
  InstanceClaim claim;
  EXPECT_FALSE(claim.is_limited());
  EXPECT_TRUE(claim.TryTake());
  EXPECT_TRUE(claim.TryTake());
  EXPECT_FALSE(claim.is_in_line());
  EXPECT_FALSE(claim.is_engaged());
  claim.Give();
}

TEST_F(InstanceClaimTest, AnInstanceThatFindsNothingLeftWaitsInLineUntilItsGrant) {
  int granted = 0;
  InstanceClaim first = Claim();
  InstanceClaim second = Claim([&] { ++granted; });
  ASSERT_TRUE(first.TryTake());
  EXPECT_TRUE(first.is_engaged());
  EXPECT_FALSE(first.is_in_line());
  EXPECT_FALSE(second.TryTake());
  EXPECT_TRUE(second.is_in_line());
  first.Give();
  EXPECT_EQ(granted, 1);
  EXPECT_FALSE(first.is_engaged());
  EXPECT_FALSE(second.is_in_line());
  EXPECT_TRUE(second.is_engaged()) << "what was granted is its own before it executes";
  EXPECT_TRUE(second.TryTake());
}

TEST_F(InstanceClaimTest, AnInstanceThatWantsMoreStandsInLineAgain) {
  InstanceClaim first = Claim();
  InstanceClaim second = Claim();
  ASSERT_TRUE(first.TryTake());
  ASSERT_FALSE(second.TryTake());
  first.Give(/*wants_more=*/true);
  EXPECT_TRUE(first.is_in_line());
  EXPECT_TRUE(second.TryTake());
}

TEST_F(InstanceClaimTest, AnInstanceThatGoesLeavesItsResourcesToOthers) {
  InstanceClaim first = Claim();
  InstanceClaim second = Claim();
  ASSERT_TRUE(first.TryTake());
  ASSERT_FALSE(second.TryTake());
  first.Reset();
  EXPECT_FALSE(first.is_limited());
  EXPECT_TRUE(second.TryTake());
}

}  // namespace
}  // namespace nereid::schedule
