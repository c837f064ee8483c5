// SPDX-License-Identifier: Apache-2.0
// The statistics of a model version. Recording is a few relaxed additions on a cache line that
// belongs to the calling thread (or few threads); reading sums the shards. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "core/observers.h"
#include "memory/memory_type.h"

namespace nereid::core {

// How often something happened, and its total duration.
struct Duration {
  uint64_t count = 0;
  uint64_t ns = 0;
  Duration& operator+=(const Duration& other) {
    count += other.count;
    ns += other.ns;
    return *this;
  }
};

// Why a request failed.
enum class FailureReason : uint8_t { kRejected = 0, kCancelled = 1, kBackend = 2, kOther = 3 };
inline constexpr size_t kFailureReasons = 4;
// The names in metrics and statistics, in the order of FailureReason.
inline constexpr std::array<std::string_view, kFailureReasons> kFailureReasonNames = {
    "REJECTED", "CANCELED", "BACKEND", "OTHER"};

// The upper bounds of duration buckets, the same for requests, queues and executions.
inline constexpr std::array<uint64_t, 20> kDurationBoundsNs = {
    10'000,        25'000,        50'000,        100'000,        250'000,
    500'000,       1'000'000,     2'500'000,     5'000'000,      10'000'000,
    25'000'000,    50'000'000,    100'000'000,   250'000'000,    500'000'000,
    1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000};
// The count of each bucket; the last one has no upper bound.
using DurationBuckets = std::array<uint64_t, kDurationBoundsNs.size() + 1>;

// Why a batch was executed instead of waiting for a larger one.
enum class BatchClosed : uint8_t {
  kFull = 0,          // no further request fits into max_batch_size
  kPreferred = 1,     // a preferred size was reached
  kDelay = 2,         // the oldest request had waited its delay
  kIncompatible = 3,  // the next request cannot share a batch with it
  kEager = 4,         // an instance was free and no delay is configured
};
inline constexpr size_t kBatchClosedReasons = 5;
inline constexpr std::array<std::string_view, kBatchClosedReasons> kBatchClosedNames = {
    "full", "preferred", "delay", "incompatible", "eager"};

// Why a request was refused to keep an overloaded model useful for the others.
enum class Refusal : uint8_t {
  kHopeless = 0,     // by what the model takes lately, its deadline would have passed
  kExpired = 1,      // its deadline passed in the queue
  kConcurrency = 2,  // the model's adaptive limit was reached
  kRate = 3,         // the caller's rate was used up
};
inline constexpr size_t kRefusals = 4;
inline constexpr std::array<std::string_view, kRefusals> kRefusalNames = {"deadline", "expired",
                                                                          "concurrency", "rate"};

// The costs of one response of a decoupled model, by its position among the request's responses.
struct ResponseStatistics {
  Duration compute_infer, compute_output, success, fail, empty_response, cancel;
  ResponseStatistics& operator+=(const ResponseStatistics& other) {
    compute_infer += other.compute_infer;
    compute_output += other.compute_output;
    success += other.success;
    fail += other.fail;
    empty_response += other.empty_response;
    cancel += other.cancel;
    return *this;
  }
};

// Durations of the executions of one batch size.
struct BatchStatistics {
  Duration compute_input, compute_infer, compute_output;
};

// The memory that a model holds, as its backend reports it.
struct MemoryUse {
  memory::Placement where;
  uint64_t bytes = 0;
};

// A consistent view: the queue and execution times of a request never appear before the request
// itself.
struct StatisticsSnapshot {
  uint64_t inference_count = 0;
  uint64_t execution_count = 0;
  uint64_t last_inference_ms = 0;  // wall clock, milliseconds since 1970; 0: never
  uint64_t pending_count = 0;
  Duration success, fail, queue, compute_input, compute_infer, compute_output;
  Duration cache_hit, cache_miss;
  std::array<uint64_t, kFailureReasons> failures{};
  std::array<uint64_t, kBatchClosedReasons> batches_closed{};
  std::array<uint64_t, kRefusals> refusals{};
  std::map<uint64_t, BatchStatistics> batches;       // by executed batch size
  std::map<uint64_t, ResponseStatistics> responses;  // by position
  std::vector<MemoryUse> memory;                     // by type and device
  // The durations of successful requests; those from the cache have no compute time.
  DurationBuckets request_buckets{}, queue_buckets{}, compute_buckets{};
};

// The part of a snapshot that tells how busy a model is. Takes a fraction of the time to read.
struct LoadCounts {
  uint64_t successes = 0;
  uint64_t failures = 0;
  uint64_t pending = 0;
  DurationBuckets request_buckets{};
};

// The points in time of one executed request, as the backend reports them (monotonic nanoseconds).
struct ComputeTimes {
  uint64_t compute_start_ns = 0;
  uint64_t compute_input_end_ns = 0;
  uint64_t compute_output_start_ns = 0;
  uint64_t compute_end_ns = 0;
};

// The counters of one model version; see the top of this file.
class ModelStatistics {
 public:
  ModelStatistics();
  ~ModelStatistics();

  // Enables more than counters. Called once, before the first request.
  void Observe(const ObserveOptions& options);
  // Returns null unless Observe was called.
  const Observers* observers() const { return observers_.get(); }

  void RecordSuccess(uint64_t batch_size, uint64_t request_start_ns, uint64_t queue_start_ns,
                     const ComputeTimes& compute, uint64_t request_end_ns);
  void RecordFailure(FailureReason reason, uint64_t request_start_ns, uint64_t request_end_ns);
  // Counts a refusal, whose failure is recorded as well.
  void RecordRefusal(Refusal reason);
  // Records the execution of a batch, which ended at `executed_ns`.
  void RecordExecution(uint64_t batch_size, const ComputeTimes& compute, uint64_t executed_ns);
  // Records a response from the cache after a lookup of `lookup_ns`: a success without an
  // inference.
  void RecordCacheHit(uint64_t request_start_ns, uint64_t request_end_ns, uint64_t lookup_ns);
  // Records a cache miss: `cache_ns` is the time of the lookup and, after the execution, of the
  // insertion.
  void RecordCacheMiss(uint64_t cache_ns);
  // Records that a batch was closed, for which `taken` requests are no longer pending.
  void RecordBatchClosed(BatchClosed reason, uint64_t taken);
  void RecordResponse(uint64_t position, const ResponseStatistics& response);
  // RecordFirstResponse is called when the first response to a request of `request_start_ns` is
  // sent, if times_first_responses().
  bool times_first_responses() const { return times_first_responses_; }
  void RecordFirstResponse(uint64_t request_start_ns);
  void AddPending(int64_t change);
  // Replaces the memory use of `owner` (the model or one of its instances).
  void SetMemoryUse(const void* owner, std::vector<MemoryUse> use);

  StatisticsSnapshot Read() const;
  // Returns nothing if nothing was ever recorded.
  std::optional<LoadCounts> ReadLoad() const;

 private:
  struct Shard;
  struct Writer;
  Writer Mine();
  Shard& Make(size_t index);
  uint64_t ToWallClockMs(uint64_t last_executed_ns) const;

  static constexpr size_t kShards = 16;
  // Each shard is made when its thread first records something, because most models are used by few
  // threads.
  std::array<std::atomic<Shard*>, kShards> shards_{};
  std::unique_ptr<Observers> observers_;  // constant once there are requests
  bool times_first_responses_ = false;    // constant once there are requests
  mutable base::Mutex mutex_;             // guards what is seldom written
  std::map<const void*, std::vector<MemoryUse>> memory_ NEREID_GUARDED_BY(mutex_);
  // The last execution that was read, and its wall-clock time.
  mutable uint64_t told_executed_ns_ NEREID_GUARDED_BY(mutex_) = 0;
  mutable uint64_t told_ms_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::core
