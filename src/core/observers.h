// SPDX-License-Identifier: Apache-2.0
// What a model's statistics collect besides counters, if enabled (--metrics-config).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "observe/summary.h"

namespace nereid::core {

// A histogram of the milliseconds from a request to its first response. Thread-safe.
class FirstResponses {
 public:
  explicit FirstResponses(std::vector<double> bounds_ms);

  void Record(uint64_t ms);
  const std::vector<double>& bounds_ms() const { return bounds_ms_; }
  // Returns the count of each bucket, one more than there are bounds.
  std::vector<uint64_t> Counts() const;
  uint64_t sum_ms() const { return sum_ms_.load(std::memory_order_relaxed); }  // a lone sum

 private:
  const std::vector<double> bounds_ms_;
  const std::unique_ptr<std::atomic<uint64_t>[]> counts_;
  std::atomic<uint64_t> sum_ms_{0};
};

// Which distributions are recorded besides counts and sums.
struct ObserveOptions {
  // The quantiles of duration summaries; empty: no summaries.
  std::vector<observe::QuantileError> quantiles;
  // The bounds of the buckets of first responses; absent: they are not measured.
  std::optional<std::vector<double>> first_response_bounds_ms;
  // Whether responses may come from the cache.
  bool is_cached = false;
};

// The distributions of one model. Null members are not collected. Durations are in whole
// microseconds.
struct Observers {
  explicit Observers(const ObserveOptions& options);

  std::unique_ptr<observe::Summary> request, queue, compute_input, compute_infer, compute_output;
  std::unique_ptr<observe::Summary> cache_hit, cache_miss;
  std::unique_ptr<FirstResponses> first_response;
};

}  // namespace nereid::core
