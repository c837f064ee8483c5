// SPDX-License-Identifier: Apache-2.0
// What a model version has done. Recording is a few relaxed additions on a cache line that belongs to
// the calling thread (or few threads); reading sums the shards. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"

namespace nereid::core {

struct Duration {
  uint64_t count = 0;
  uint64_t ns = 0;
  Duration& operator+=(const Duration& other) {
    count += other.count;
    ns += other.ns;
    return *this;
  }
};

enum class FailureReason : uint8_t { kRejected = 0, kCancelled = 1, kBackend = 2, kOther = 3 };
inline constexpr size_t kFailureReasons = 4;

struct BatchStatistics {
  Duration compute_input, compute_infer, compute_output;
};

struct StatisticsSnapshot {
  uint64_t inference_count = 0;
  uint64_t execution_count = 0;
  uint64_t last_inference_ms = 0;  // wall clock, milliseconds since 1970; 0: never
  uint64_t pending_count = 0;
  Duration success, fail, queue, compute_input, compute_infer, compute_output;
  std::array<uint64_t, kFailureReasons> failures{};
  std::map<uint64_t, BatchStatistics> batches;  // by executed batch size
};

// Points in time of one executed request, as the backend reports them (monotonic nanoseconds).
struct ComputeTimes {
  uint64_t compute_start_ns = 0;
  uint64_t compute_input_end_ns = 0;
  uint64_t compute_output_start_ns = 0;
  uint64_t compute_end_ns = 0;
};

class ModelStatistics {
 public:
  ModelStatistics();
  ~ModelStatistics();

  void RecordSuccess(uint64_t batch_size, uint64_t request_start_ns, uint64_t queue_start_ns,
                     const ComputeTimes& compute, uint64_t request_end_ns);
  void RecordFailure(FailureReason reason, uint64_t request_start_ns, uint64_t request_end_ns);
  void RecordExecution(uint64_t batch_size, const ComputeTimes& compute);
  void AddPending(int64_t change);

  StatisticsSnapshot Read() const;

 private:
  struct Shard;
  Shard& Mine() const;

  static constexpr size_t kShards = 16;
  const std::unique_ptr<Shard[]> shards_;
};

}  // namespace nereid::core
