// SPDX-License-Identifier: Apache-2.0
#include "loadgen/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nereid::loadgen {

// Times below 2^kBits have a bucket each. Above, the bucket is made of the position of the highest
// bit and of the kBits bits that follow it.
size_t Histogram::BucketOf(uint64_t ns) {
  const int width = std::bit_width(ns);
  if (width <= kBits) return ns;
  const int shift = width - kBits - 1;
  return (static_cast<size_t>(shift + 1) << kBits) + ((ns >> shift) & ((1U << kBits) - 1));
}

double Histogram::MiddleOf(size_t bucket) {
  const size_t group = bucket >> kBits;
  if (group == 0) return static_cast<double>(bucket);
  const uint64_t first = (uint64_t{1} << kBits) + (bucket & ((1U << kBits) - 1));
  return (static_cast<double>(first) + 0.5) * static_cast<double>(uint64_t{1} << (group - 1));
}

void Histogram::Add(std::chrono::nanoseconds time) {
  const uint64_t ns = std::min(static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)), kMaxNs);
  if (buckets_.empty()) buckets_.resize(kBuckets);
  ++buckets_[BucketOf(ns)];
  ++count_;
  sum_ns_ += static_cast<double>(ns);
  max_ns_ = std::max(max_ns_, ns);
}

void Histogram::Add(const Histogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

double Histogram::mean_ns() const {
  return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_);
}

double Histogram::QuantileNs(double share) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<uint64_t>(rank, 1)) {
      return std::min(MiddleOf(i), static_cast<double>(max_ns_));
    }
  }
  return static_cast<double>(max_ns_);
}

}  // namespace nereid::loadgen
