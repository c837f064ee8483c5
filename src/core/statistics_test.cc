// SPDX-License-Identifier: Apache-2.0
#include "core/statistics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace nereid::core {
namespace {

TEST(ModelStatistics, SumsWhatManyThreadsRecorded) {
  ModelStatistics statistics;
  // More threads than there are exclusive shards, in two generations.
  for (int generation = 0; generation < 2; ++generation) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 24; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          statistics.RecordSuccess(2, 100, 110, {120, 125, 145, 150}, 160);
          statistics.RecordExecution(2, {120, 125, 145, 150}, 150);
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
  const auto load = statistics.ReadLoad();
  ASSERT_TRUE(load);
  EXPECT_EQ(load->successes, kCalls);
  EXPECT_EQ(load->failures, kCalls);
  EXPECT_EQ(load->pending, 0u);
  EXPECT_EQ(load->request_buckets, sum.request_buckets);
  EXPECT_FALSE(ModelStatistics().ReadLoad());
  EXPECT_EQ(sum.success.ns, 60 * kCalls);
  EXPECT_EQ(sum.queue.ns, 10 * kCalls);
  EXPECT_EQ(sum.compute_infer.ns, 20 * kCalls);
  EXPECT_EQ(sum.fail.ns, 30 * kCalls);
  EXPECT_EQ(sum.failures[static_cast<size_t>(FailureReason::kBackend)], kCalls);
  EXPECT_EQ(sum.batches.at(2).compute_output.count, kCalls);
  EXPECT_EQ(sum.pending_count, 0u);
}

TEST(ModelStatistics, KeepsBatchesOfEverySizeApart) {
  ModelStatistics statistics;
  std::vector<std::thread> threads;
  // More threads than exclusive shards, so that some share the last one.
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 1000; ++i) {
        statistics.RecordExecution(i % 50 + 1, {100, 101, 103, 107}, 107);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StatisticsSnapshot sum = statistics.Read();
  ASSERT_EQ(sum.batches.size(), 50u);
  for (const auto& [size, batch] : sum.batches) {
    EXPECT_EQ(batch.compute_input.count, 480u) << size;
    EXPECT_EQ(batch.compute_input.ns, 480u) << size;
    EXPECT_EQ(batch.compute_infer.ns, 960u) << size;
    EXPECT_EQ(batch.compute_output.count, 480u) << size;
    EXPECT_EQ(batch.compute_output.ns, 1920u) << size;
  }
}

TEST(ModelStatistics, TellsWhenTheLastExecutionWasByTheWallClock) {
  const auto wall_ms = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  };
  ModelStatistics statistics;
  EXPECT_EQ(statistics.Read().last_inference_ms, 0u);
  const auto before = static_cast<uint64_t>(wall_ms());
  const uint64_t now = base::NowNs();
  statistics.RecordExecution(1, {now, now, now, now}, now);
  const uint64_t told = statistics.Read().last_inference_ms;
  EXPECT_LE(before, told + 1000);  // the two clocks are not read at the same moment
  EXPECT_LE(told, static_cast<uint64_t>(wall_ms()));
  EXPECT_EQ(statistics.Read().last_inference_ms, told);
  // An execution in the future, by a backend with another clock, is not believed.
  statistics.RecordExecution(1, {now, now, now, now}, UINT64_MAX);
  EXPECT_LE(statistics.Read().last_inference_ms, static_cast<uint64_t>(wall_ms()));
}

TEST(ModelStatistics, AddsUpTheMemoryThatModelAndInstancesReport) {
  ModelStatistics statistics;
  const int model = 0;
  const int instance = 0;
  statistics.SetMemoryUse(&model, {{{memory::MemoryType::kGpu, 1}, 100}, {{}, 5}});
  statistics.SetMemoryUse(&instance, {{{memory::MemoryType::kGpu, 1}, 7}});
  statistics.SetMemoryUse(&instance, {{{memory::MemoryType::kGpu, 1}, 11}});
  const StatisticsSnapshot sum = statistics.Read();
  ASSERT_EQ(sum.memory.size(), 2u);
  EXPECT_EQ(sum.memory[0].bytes, 5u);
  EXPECT_EQ(sum.memory[1].bytes, 111u);
  EXPECT_EQ(sum.memory[1].where.id, 1);
}

TEST(ModelStatistics, NeverShowsAPartBeforeTheWhole) {
  ModelStatistics statistics;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      while (!is_over.load()) statistics.RecordSuccess(1, 0, 0, {10, 20, 30, 40}, 40);
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const StatisticsSnapshot sum = statistics.Read();
    const uint64_t parts =
        sum.queue.ns + sum.compute_input.ns + sum.compute_infer.ns + sum.compute_output.ns;
    EXPECT_LE(parts, sum.success.ns);
  }
  is_over.store(true);
  for (std::thread& writer : writers) writer.join();
}

TEST(ModelStatistics, CountsDurationsInTheBucketThatHoldsThem) {
  ModelStatistics statistics;
  uint64_t expected = 0;
  for (const uint64_t bound : kDurationBoundsNs) {
    statistics.RecordSuccess(1, 0, 0, {bound - 1, 0, 0, 0}, bound);
    statistics.RecordSuccess(1, 0, 0, {bound, 0, 0, 0}, bound + 1);
    expected += 2;
  }
  statistics.RecordSuccess(1, 0, 0, {0, 0, 0, 0}, 0);
  const StatisticsSnapshot sum = statistics.Read();
  EXPECT_EQ(sum.request_buckets[0], 2u);  // zero and exactly the first bound
  for (size_t i = 1; i < kDurationBoundsNs.size(); ++i) EXPECT_EQ(sum.request_buckets[i], 2u) << i;
  EXPECT_EQ(sum.request_buckets.back(), 1u);
  for (size_t i = 1; i < kDurationBoundsNs.size(); ++i) EXPECT_EQ(sum.queue_buckets[i], 2u) << i;
  EXPECT_EQ(sum.compute_buckets[0], expected + 1);
}

TEST(ModelStatistics, CollectsSummariesAndFirstResponsesWhereAskedTo) {
  ModelStatistics statistics;
  EXPECT_EQ(statistics.observers(), nullptr);
  EXPECT_FALSE(statistics.times_first_responses());
  statistics.Observe({.quantiles = {{0.5, 0.05}},
                      .first_response_bounds_ms = std::vector<double>{-1, 0, 1e9},
                      .is_cached = false});
  statistics.RecordSuccess(1, 0, 1000, {3999, 5000, 7000, 7000}, 8000);
  statistics.RecordFirstResponse(0);
  const Observers& seen = *statistics.observers();
  EXPECT_EQ(seen.request->Read().sum, 8);
  EXPECT_EQ(seen.queue->Read().sum, 2);
  EXPECT_EQ(seen.compute_infer->Read().count, 1u);
  EXPECT_EQ(seen.cache_hit, nullptr);
  EXPECT_EQ(seen.first_response->Counts(), (std::vector<uint64_t>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace nereid::core
