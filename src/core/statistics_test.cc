// SPDX-License-Identifier: Apache-2.0
#include "core/statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace nereid::core {
namespace {

TEST(ModelStatistics, SumsWhatManyThreadsRecorded) {
  ModelStatistics statistics;
  // More threads than there are shards to themselves, in two generations.
  for (int generation = 0; generation < 2; ++generation) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 24; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          statistics.RecordSuccess(2, 100, 110, {120, 125, 145, 150}, 160);
          statistics.RecordExecution(2, {120, 125, 145, 150});
          statistics.RecordFailure(FailureReason::kBackend, 100, 130);
          statistics.AddPending(1);
          statistics.AddPending(-1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const StatisticsSnapshot sum = statistics.Read();
  constexpr uint64_t kCalls = 48'000;
  EXPECT_EQ(sum.inference_count, 2 * kCalls);
  EXPECT_EQ(sum.execution_count, kCalls);
  EXPECT_EQ(sum.success.count, kCalls);
  EXPECT_EQ(sum.success.ns, 60 * kCalls);
  EXPECT_EQ(sum.queue.ns, 10 * kCalls);
  EXPECT_EQ(sum.compute_infer.ns, 20 * kCalls);
  EXPECT_EQ(sum.fail.ns, 30 * kCalls);
  EXPECT_EQ(sum.failures[static_cast<size_t>(FailureReason::kBackend)], kCalls);
  EXPECT_EQ(sum.batches.at(2).compute_output.count, kCalls);
  EXPECT_EQ(sum.pending_count, 0u);
}

}  // namespace
}  // namespace nereid::core
