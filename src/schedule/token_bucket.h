// SPDX-License-Identifier: Apache-2.0
// A rate that may be exceeded for a moment: tokens arrive evenly, and as many as arrive in one
// second can be saved up. Pure logic on clock readings. Inline, because it is part of every request
// of a caller with limits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace nereid::schedule {

// Thread-compatible.
class TokenBucket {
 public:
  // 0: there is no limit.
  explicit TokenBucket(double per_second = 0)
      : per_second_(per_second), capacity_(std::max(per_second, 1.0)), tokens_(capacity_) {}

  bool is_limited() const { return per_second_ > 0; }
  double capacity() const { return capacity_; }
  // Returns whether `amount` may be taken. An amount that is larger than the bucket may be taken
  // when the bucket is full, and is owed afterwards: otherwise it never could be.
  bool Has(double amount, uint64_t now_ns) {
    if (!is_limited()) return true;
    Fill(now_ns);
    return tokens_ + kRounding >= std::min(amount, capacity_);
  }
  // REQUIRES: Has(amount, now_ns).
  void Take(double amount, uint64_t now_ns) {
    if (!is_limited()) return;
    Fill(now_ns);
    tokens_ -= amount;
  }
  // Returns how long it takes from now until Has(amount) if nothing is taken; 0: it does already.
  std::chrono::nanoseconds Until(double amount, uint64_t now_ns) {
    if (Has(amount, now_ns)) return std::chrono::nanoseconds(0);
    const double missing = std::min(amount, capacity_) - tokens_;
    return std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(missing / per_second_ * 1e9)));
  }
  // Returns the tokens that are there; never below 0.
  double Left(uint64_t now_ns) {
    Fill(now_ns);
    return std::max(tokens_, 0.0);
  }

 private:
  // Sums of many small additions miss whole numbers by less than this.
  static constexpr double kRounding = 1e-6;

  void Fill(uint64_t now_ns) {
    if (now_ns <= filled_ns_) return;
    const double seconds = static_cast<double>(now_ns - filled_ns_) / 1e9;
    tokens_ = std::min(capacity_, tokens_ + seconds * per_second_);
    filled_ns_ = now_ns;
  }

  double per_second_;
  double capacity_;
  double tokens_;
  uint64_t filled_ns_ = 0;
};

}  // namespace nereid::schedule
