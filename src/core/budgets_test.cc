// SPDX-License-Identifier: Apache-2.0
#include "core/budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;

TEST(ChooseLimits, FitsAMachineWithPlenty) {
  const ChosenLimits chosen = ChooseLimits({}, {.memory_bytes = uint64_t{1} << 40});
  EXPECT_EQ(chosen.limits.connections, 65'536u);
  EXPECT_EQ(chosen.limits.connections_per_address, 49'152u);
  EXPECT_EQ(chosen.limits.requests, 65'536u);
  EXPECT_EQ(chosen.limits.requests_per_model, 49'152u);
  EXPECT_EQ(chosen.pool_bytes, 512 * kMiB);
  EXPECT_THAT(chosen.warnings, IsEmpty());
}

TEST(ChooseLimits, FitsAContainerWithOneGigabyte) {
  const ChosenLimits chosen = ChooseLimits({}, {.memory_bytes = 1024 * kMiB});
  EXPECT_EQ(chosen.limits.request_bytes, 256 * kMiB);
  EXPECT_EQ(chosen.limits.unsent_bytes, 128 * kMiB);
  EXPECT_EQ(chosen.limits.requests, 8192u);
  EXPECT_EQ(chosen.pool_bytes, 128 * kMiB);
}

TEST(ChooseLimits, LeavesDescriptorsForFiles) {
  const ChosenLimits chosen = ChooseLimits({}, {.descriptors = 256});
  EXPECT_EQ(chosen.limits.connections, 192u);
  EXPECT_THAT(chosen.warnings, IsEmpty());
}

TEST(ChooseLimits, SaysThatThereAreFewerDescriptorsThanConnections) {
  const ChosenLimits chosen = ChooseLimits({.connections = 5000}, {.descriptors = 1024});
  EXPECT_EQ(chosen.limits.connections, 960u);
  EXPECT_THAT(chosen.warnings,
              ElementsAre("'ulimit -n' is 1024, which is enough for 960 connections: "
                          "--max-connections is 960 instead of 5000"));
}

TEST(ChooseLimits, SaysThatThereIsLessMemoryThanABudget) {
  const ChosenLimits chosen = ChooseLimits(
      {.request_bytes = 900 * kMiB}, {.memory_bytes = 1024 * kMiB, .memory_source = "the cgroup"});
  EXPECT_EQ(chosen.limits.request_bytes, 512 * kMiB);
  EXPECT_THAT(
      chosen.warnings,
      ElementsAre("the cgroup leaves 1073741824 bytes of memory, of which a budget may take "
                  "half: --max-request-memory is 536870912 instead of 943718400"));
}

TEST(ChooseLimits, KeepsWhatWasAskedForAndFits) {
  const ChosenLimits chosen = ChooseLimits(
      {.connections = 10, .connections_per_address = 3, .requests = 7, .requests_per_model = 5},
      {.descriptors = 1024, .memory_bytes = 1024 * kMiB});
  EXPECT_EQ(chosen.limits.connections, 10u);
  EXPECT_EQ(chosen.limits.connections_per_address, 3u);
  EXPECT_EQ(chosen.limits.requests, 7u);
  EXPECT_EQ(chosen.limits.requests_per_model, 5u);
}

TEST(Budgets, ReportsWhatIsUsedAndRefused) {
  Budgets budgets(ChooseLimits({.request_bytes = 100}, {.memory_bytes = 1024 * kMiB}).limits);
  EXPECT_TRUE(budgets.request_bytes.TryTake(60));
  EXPECT_FALSE(budgets.request_bytes.TryTake(60));
  bool is_found = false;
  for (const BudgetReading& reading : budgets.Read()) {
    if (reading.name != "request_memory") continue;
    is_found = true;
    EXPECT_EQ(reading.limit, 100u);
    EXPECT_EQ(reading.used, 60u);
    EXPECT_EQ(reading.refusals, 1u);
  }
  EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace nereid::core
