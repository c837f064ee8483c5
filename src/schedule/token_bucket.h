// SPDX-License-Identifier: Apache-2.0
// A rate that may be exceeded for a moment: tokens arrive evenly, and as many as arrive in one
// second can be saved up. Pure logic on clock readings.
#pragma once

#include <chrono>
#include <cstdint>

namespace nereid::schedule {

// Thread-compatible.
class TokenBucket {
 public:
  // 0: there is no limit.
  explicit TokenBucket(double per_second = 0);

  bool is_limited() const { return per_second_ > 0; }
  double capacity() const { return capacity_; }
  // Returns whether `amount` may be taken. An amount that is larger than the bucket may be taken
  // when the bucket is full, and is owed afterwards: otherwise it never could be.
  bool Has(double amount, uint64_t now_ns);
  // REQUIRES: Has(amount, now_ns).
  void Take(double amount, uint64_t now_ns);
  // Returns how long it takes from now until Has(amount) if nothing is taken; 0: it does already.
  std::chrono::nanoseconds Until(double amount, uint64_t now_ns);
  // Returns the tokens that are there; never below 0.
  double Left(uint64_t now_ns);

 private:
  void Fill(uint64_t now_ns);

  double per_second_;
  double capacity_;
  double tokens_;
  uint64_t filled_ns_ = 0;
};

}  // namespace nereid::schedule
