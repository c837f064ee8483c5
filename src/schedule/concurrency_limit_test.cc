// SPDX-License-Identifier: Apache-2.0
#include "schedule/concurrency_limit.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nereid::schedule {
namespace {

// A model of `instances` that execute up to `batch` requests at once, always in the same time, and
// have as many requests as `limit` admits, but no more than `clients`.
void Serve(ConcurrencyLimit& limit, size_t instances, size_t batch, size_t clients,
           int executions) {
  constexpr uint64_t kDurationNs = 1'000'000;
  for (int i = 0; i < executions; ++i) {
    const size_t in_flight = std::min(clients, limit.value());
    const size_t at_once = std::min(in_flight, instances * batch);
    const uint64_t stay_ns = kDurationNs * in_flight / std::max<size_t>(at_once, 1);
    limit.Note(
        {.request_count = batch, .waited_ns = stay_ns - kDurationNs, .duration_ns = kDurationNs},
        in_flight, instances);
  }
}

TEST(ConcurrencyLimit, SettlesWhereEveryInstanceHasABatchAndAnotherOneWaits) {
  for (const size_t instances : {1, 2, 8}) {
    for (const size_t batch : {1, 4, 32}) {
      ConcurrencyLimit limit;
      Serve(limit, instances, batch, 1'000'000, 2000);
      EXPECT_GE(limit.value(), 2 * instances * batch) << instances << " " << batch;
      EXPECT_LE(limit.value(), 5 * instances * batch) << instances << " " << batch;
    }
  }
}

TEST(ConcurrencyLimit, DoesNotGrowWhileNobodyReachesIt) {
  ConcurrencyLimit limit;
  const size_t before = limit.value();
  Serve(limit, 4, 8, 3, 1000);
  EXPECT_EQ(limit.value(), before);
}

TEST(ConcurrencyLimit, FallsAndRecoversWithTheSpeedOfTheModel) {
  ConcurrencyLimit limit;
  Serve(limit, 8, 32, 1'000'000, 2000);
  const size_t fast = limit.value();
  Serve(limit, 1, 1, 1'000'000, 200);
  EXPECT_LT(limit.value(), 8u);
  Serve(limit, 8, 32, 1'000'000, 2000);
  EXPECT_GT(limit.value(), fast * 9 / 10);
}

TEST(ConcurrencyLimit, LeavesEachInstanceSomethingToDo) {
  ConcurrencyLimit limit;
  for (int i = 0; i < 1000; ++i) {
    limit.Note({.request_count = 1, .waited_ns = 1'000'000'000, .duration_ns = 1}, limit.value(),
               3);
  }
  EXPECT_GE(limit.value(), 6u);
  EXPECT_TRUE(limit.Admits(5));
  EXPECT_FALSE(limit.Admits(limit.value()));
}

TEST(ConcurrencyLimit, IgnoresExecutionsThatNobodyTimed) {
  ConcurrencyLimit limit;
  const size_t before = limit.value();
  for (int i = 0; i < 100; ++i) limit.Note({}, 1'000'000, 1);
  EXPECT_EQ(limit.value(), before);
}

}  // namespace
}  // namespace nereid::schedule
