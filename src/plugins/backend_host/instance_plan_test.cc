// SPDX-License-Identifier: Apache-2.0
#include "backend_host/instance_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

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

std::vector<InstanceGroup> RandomGroups(std::mt19937& random) {
  std::vector<InstanceGroup> groups;
  for (uint32_t i = random() % 4; i > 0; --i) {
    constexpr Kind kKinds[] = {Kind::kCpu, Kind::kModel, Kind::kGpu};
    InstanceGroup group = Group(static_cast<int32_t>(random() % 4), kKinds[random() % 3],
                                "g" + std::to_string(random() % 3));
    if (group.kind == Kind::kGpu) group.gpus = {0, static_cast<int32_t>(1 + random() % 2)};
    group.passive = random() % 4 == 0;
    groups.push_back(group);
  }
  return groups;
}

TEST(InstancePlan, LosesAndInventsNoInstanceWhateverTheGroups) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto present = *ListInstances(RandomGroups(random));
    const auto wanted = *ListInstances(RandomGroups(random));
    const InstancePlan plan = PlanInstances(present, wanted);
    std::set<size_t> seen(plan.kept.begin(), plan.kept.end());
    EXPECT_EQ(seen.size(), plan.kept.size()) << "an instance cannot serve twice";
    seen.insert(plan.removed.begin(), plan.removed.end());
    EXPECT_EQ(seen.size(), present.size());
    EXPECT_EQ(plan.kept.size() + plan.removed.size(), present.size());
    EXPECT_EQ(plan.kept.size() + plan.added.size(), wanted.size());
    // What is removed could serve for nothing that is made anew.
    for (const size_t removed : plan.removed) {
      for (const size_t added : plan.added) {
        EXPECT_FALSE(present[removed].IsSameAs(wanted[added]));
      }
    }
  }
}

TEST(InstancePlan, KeepsAllInstancesInWhateverOrderTheGroupsAre) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::vector<InstanceGroup> groups = RandomGroups(random);
    const auto present = *ListInstances(groups);
    std::ranges::shuffle(groups, random);
    const InstancePlan plan = PlanInstances(present, *ListInstances(groups));
    EXPECT_TRUE(plan.added.empty() && plan.removed.empty());
    EXPECT_EQ(plan.kept.size(), present.size());
  }
}

TEST(InstancePlan, RefusesAKindThatIsNotDecided) {
  EXPECT_FALSE(ListInstances({Group(1, Kind::kAuto)}).ok());
}

}  // namespace
}  // namespace nereid::backend_host
