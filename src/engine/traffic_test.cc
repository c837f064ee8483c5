// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

using service::TrafficRules;

TrafficRules WithCanary(double percent) {
  TrafficRules rules;
  rules.canary = service::Canary{.version = 2, .percent = percent, .header = "x", .label = ""};
  return rules;
}

TrafficRules WithShadow(int64_t version) {
  TrafficRules rules;
  rules.shadow = service::Shadow{.model = "", .version = version};
  return rules;
}

int CountCanary(const Traffic& traffic, int requests) {
  int count = 0;
  for (int i = 0; i < requests; ++i) count += traffic.ChoosesCanary("m", "") ? 1 : 0;
  return count;
}

TEST(Traffic, SharesAreExactAtEveryLength) {
  for (const double percent : {0.0, 0.1, 0.5, 1.0, 5.0, 33.3, 50.0, 75.0, 99.9, 100.0}) {
    const auto traffic = Traffic::AfterChange(WithCanary(percent), nullptr);
    int total = 0;
    for (int requests = 100; requests <= 4000; requests += 100) {
      total += CountCanary(*traffic, 100);
      EXPECT_NEAR(total, requests * percent / 100, 4) << percent << " % of " << requests;
    }
  }
}

TEST(Traffic, AKeyStaysAndALargerShareOnlyAdds) {
  const auto small = Traffic::AfterChange(WithCanary(10), nullptr);
  const auto large = Traffic::AfterChange(WithCanary(40), nullptr);
  int at_small = 0;
  int at_large = 0;
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "user-" + std::to_string(i);
    const bool is_first = small->ChoosesCanary("m", key);
    EXPECT_EQ(small->ChoosesCanary("m", key), is_first);
    EXPECT_TRUE(!is_first || large->ChoosesCanary("m", key)) << key;
    at_small += is_first ? 1 : 0;
    at_large += large->ChoosesCanary("m", key) ? 1 : 0;
  }
  EXPECT_NEAR(at_small, kKeys * 0.1, kKeys * 0.01);
  EXPECT_NEAR(at_large, kKeys * 0.4, kKeys * 0.01);
}

TEST(Traffic, OtherModelsDivideTheSameKeysOtherwise) {
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = std::to_string(i);
    different += (PlaceOf("a", key) < 0.5) != (PlaceOf("b", key) < 0.5) ? 1 : 0;
  }
  EXPECT_GT(different, 400);
  EXPECT_LT(different, 600);
}

TEST(Traffic, ALoadKeepsARunTimeChangeUnlessTheConfigurationChanged) {
  EXPECT_EQ(Traffic::AfterLoad(TrafficRules(), nullptr), nullptr);
  const auto loaded = Traffic::AfterLoad(WithCanary(5), nullptr);
  EXPECT_TRUE(loaded->Read().is_as_configured);
  const auto changed = Traffic::AfterChange(WithCanary(50), loaded);
  EXPECT_FALSE(changed->Read().is_as_configured);
  EXPECT_EQ(Traffic::AfterLoad(WithCanary(5), changed), changed);
  const auto again = Traffic::AfterLoad(WithCanary(6), changed);
  EXPECT_EQ(again->rules().canary->percent, 6);
  EXPECT_TRUE(again->Read().is_as_configured);
}

TEST(Traffic, CountsOfAShadowStayWhileItIsTheSame) {
  const auto first = Traffic::AfterChange(WithShadow(2), nullptr);
  first->tally().equal.fetch_add(3);
  TrafficRules slower = WithShadow(2);
  slower.shadow->percent = 1;
  EXPECT_EQ(Traffic::AfterChange(slower, first)->Read().shadow_counts.equal, 3u);
  EXPECT_EQ(Traffic::AfterChange(WithShadow(3), first)->Read().shadow_counts.equal, 0u);
}

TEST(ShadowTally, CopiesAreBoundedByNumberAndMemory) {
  ShadowTally tally;
  EXPECT_TRUE(tally.Take(2, 10));
  EXPECT_TRUE(tally.Take(2, 10));
  EXPECT_FALSE(tally.Take(2, 10));
  tally.Give(10);
  EXPECT_FALSE(tally.Take(2, uint64_t{65} << 20));
  EXPECT_TRUE(tally.Take(2, 10));
  EXPECT_EQ(tally.Read().dropped, 2u);
  EXPECT_EQ(tally.bytes_in_flight.load(), 20u);
}

}  // namespace
}  // namespace nereid::engine
