// SPDX-License-Identifier: Apache-2.0
// Counts latencies in little memory, whatever their number.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nereid::loadgen {

// A histogram whose buckets are at most 1/64 as wide as their values, so that every quantile is
// right within 0.8 %. Takes times from 1 ns to 4 hours; longer ones count as 4 hours.
// Thread-compatible.
class Histogram {
 public:
  void Add(std::chrono::nanoseconds time);
  void Add(const Histogram& other);

  uint64_t count() const { return count_; }
  double mean_ns() const;
  uint64_t max_ns() const { return max_ns_; }
  // Returns the time that the given share of all times does not exceed, for example 0.99. 0 if
  // there are none.
  double QuantileNs(double share) const;

 private:
  static constexpr int kBits = 6;  // a power of two is split into 2^kBits buckets
  static constexpr uint64_t kMaxNs = (uint64_t{1} << 44) - 1;
  static constexpr size_t kBuckets = (44 - kBits + 1) << kBits;

  static size_t BucketOf(uint64_t ns);
  static double MiddleOf(size_t bucket);

  std::vector<uint32_t> buckets_;  // empty until the first time is added
  uint64_t count_ = 0;
  double sum_ns_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace nereid::loadgen
