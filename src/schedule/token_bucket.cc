// SPDX-License-Identifier: Apache-2.0
#include "schedule/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace nereid::schedule {
namespace {

// Sums of many small additions miss whole numbers by less than this.
constexpr double kRounding = 1e-6;

}  // namespace

TokenBucket::TokenBucket(double per_second)
    : per_second_(per_second), capacity_(std::max(per_second, 1.0)), tokens_(capacity_) {}

void TokenBucket::Fill(uint64_t now_ns) {
  if (now_ns <= filled_ns_) return;
  const double seconds = static_cast<double>(now_ns - filled_ns_) / 1e9;
  tokens_ = std::min(capacity_, tokens_ + seconds * per_second_);
  filled_ns_ = now_ns;
}

bool TokenBucket::Has(double amount, uint64_t now_ns) {
  if (!is_limited()) return true;
  Fill(now_ns);
  return tokens_ + kRounding >= std::min(amount, capacity_);
}

void TokenBucket::Take(double amount, uint64_t now_ns) {
  if (!is_limited()) return;
  Fill(now_ns);
  tokens_ -= amount;
}

std::chrono::nanoseconds TokenBucket::Until(double amount, uint64_t now_ns) {
  if (Has(amount, now_ns)) return std::chrono::nanoseconds(0);
  const double missing = std::min(amount, capacity_) - tokens_;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(missing / per_second_ * 1e9)));
}

double TokenBucket::Left(uint64_t now_ns) {
  Fill(now_ns);
  return std::max(tokens_, 0.0);
}

}  // namespace nereid::schedule
