// SPDX-License-Identifier: Apache-2.0
#include "backend_host/instance_plan.h"

#include <gtest/gtest.h>

namespace nereid::backend_host {
namespace {

using config::InstanceGroup;
using Kind = InstanceGroup::Kind;

InstanceGroup Group(int32_t count, Kind kind = Kind::kCpu, std::string name = "g") {
  return {.name = std::move(name), .kind = kind, .count = count};
}

InstancePlan Plan(const std::vector<InstanceGroup>& from, const std::vector<InstanceGroup>& to) {
  return PlanInstances(*ListInstances(from), *ListInstances(to));
}

void ExpectCounts(const InstancePlan& plan, size_t kept, size_t added, size_t removed) {
  EXPECT_EQ(plan.kept.size(), kept);
  EXPECT_EQ(plan.added.size(), added);
  EXPECT_EQ(plan.removed.size(), removed);
}

TEST(InstancePlan, AddsAndRemovesAsManyAsTheCountSays) {
  ExpectCounts(Plan({Group(3)}, {Group(5)}), 3, 2, 0);
  ExpectCounts(Plan({Group(5)}, {Group(2)}), 2, 0, 3);
  ExpectCounts(Plan({Group(2)}, {Group(2)}), 2, 0, 0);
}

TEST(InstancePlan, KeepsInstancesWhoseGroupIsOnlyRenamedOrMoved) {
  ExpectCounts(Plan({Group(1, Kind::kCpu, "a"), Group(2, Kind::kModel, "b")},
                    {Group(2, Kind::kModel, "c"), Group(1, Kind::kCpu, "d")}),
               3, 0, 0);
}

TEST(InstancePlan, ReplacesInstancesWhoseGroupChanged) {
  ExpectCounts(Plan({Group(2)}, {Group(2, Kind::kModel)}), 0, 2, 2);
  InstanceGroup limited = Group(1);
  limited.rate_limiter = config::RateLimiter{.resources = {{.name = "R1", .count = 2}}};
  InstanceGroup less = limited;
  less.rate_limiter->resources[0].count = 1;
  ExpectCounts(Plan({limited}, {less}), 0, 1, 1);
  InstanceGroup passive = Group(1);
  passive.passive = true;
  ExpectCounts(Plan({Group(1)}, {passive}), 0, 1, 1);
  InstanceGroup pinned = Group(1);
  pinned.host_policy = "numa_1";
  ExpectCounts(Plan({Group(1)}, {pinned}), 0, 1, 1);
}

TEST(InstancePlan, CountsEachDeviceOfAGroup) {
  InstanceGroup one = Group(2, Kind::kGpu);
  one.gpus = {0, 1};
  const auto list = *ListInstances({one});
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[1].device_id, 1);
  EXPECT_EQ(list[1].host_policy, "gpu_1");
  EXPECT_EQ(list[2].name, "g_1");
}

TEST(InstancePlan, RefusesAKindThatIsNotDecided) {
  EXPECT_FALSE(ListInstances({Group(1, Kind::kAuto)}).ok());
}

}  // namespace
}  // namespace nereid::backend_host
