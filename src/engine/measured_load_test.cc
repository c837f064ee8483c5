// SPDX-License-Identifier: Apache-2.0
#include "engine/measured_load.h"

#include <gtest/gtest.h>

#include "engine/testing/fake_demand_host.h"

namespace nereid::engine {
namespace {

TEST(MeasuredLoad, TellsWhatANewModelTakes) {
  const MeasuredLoad load{.before = {100, 7}, .after = {140, 5}, .is_exact = true};
  EXPECT_EQ(load.Grown(), (MemoryBytes{40, 0}));
  EXPECT_EQ(load.BytesOf(std::nullopt, /*was_loaded=*/false), (MemoryBytes{40, 0}));
  // What is known of an earlier load is for the policy to average.
  EXPECT_EQ(load.BytesOf(MemoryBytes{60, 0}, /*was_loaded=*/false), (MemoryBytes{40, 0}));
}

TEST(MeasuredLoad, TellsWhatAReplacedModelTakes) {
  const MeasuredLoad load{.before = {100, 50}, .after = {140, 20}, .is_exact = true};
  EXPECT_EQ(load.BytesOf(MemoryBytes{60, 40}, /*was_loaded=*/true), (MemoryBytes{100, 10}));
  EXPECT_EQ(load.BytesOf(MemoryBytes{60, 10}, /*was_loaded=*/true), (MemoryBytes{100, 0}));
}

TEST(MeasuredLoad, ChangesNothingThatIsKnownIfItIsNotExact) {
  const MeasuredLoad load{.before = {100}, .after = {140}};
  EXPECT_EQ(load.BytesOf(MemoryBytes{60}, /*was_loaded=*/true), MemoryBytes{60});
  EXPECT_EQ(load.BytesOf(std::nullopt, /*was_loaded=*/false), MemoryBytes{40});
}

TEST(LoadMeasured, WaitsForTheMemoryOfOtherVersions) {
  FakeDemandHost host;
  host.Add("a", 40);
  EXPECT_EQ(LoadMeasured(host, "a", {}).Grown(), MemoryBytes{40});
  host.Add("a", 50);
  const MeasuredLoad second = LoadMeasured(host, "a", {});
  EXPECT_TRUE(second.is_exact);
  EXPECT_EQ(second.Grown(), MemoryBytes{10});
  // A request keeps the second version in memory.
  const auto request = host.Find("a", "");
  host.Add("a", 60);
  EXPECT_FALSE(LoadMeasured(host, "a", {}).is_exact);
  host.Fail("a", "the file is damaged");
  EXPECT_EQ(LoadMeasured(host, "a", {}).status.message(), "the file is damaged");
}

}  // namespace
}  // namespace nereid::engine
