// SPDX-License-Identifier: Apache-2.0
// When requests of an open loop are due.
#pragma once

#include <cstdint>
#include <random>

#include "base/clock.h"

namespace nereid::loadgen {

// How the times between requests are distributed.
enum class Distribution { kConstant, kPoisson };

// Thread-compatible.
class Arrivals {
 public:
  // `rate` is in requests a second. The first request is due at `first`; the same seed gives the
  // same times.
  Arrivals(Distribution distribution, double rate, base::TimePoint first, uint64_t seed)
      : distribution_(distribution), pause_(1e9 / rate), first_(first), random_(seed) {}

  base::TimePoint next() const {
    return first_ + std::chrono::nanoseconds(static_cast<int64_t>(after_));
  }
  void Advance() {
    after_ += distribution_ == Distribution::kConstant
                  ? pause_
                  : std::exponential_distribution<double>(1 / pause_)(random_);
  }

 private:
  const Distribution distribution_;
  const double pause_;  // nanoseconds on average
  const base::TimePoint first_;
  double after_ = 0;  // nanoseconds from `first_`; a sum that does not collect rounding errors
  std::mt19937_64 random_;
};

}  // namespace nereid::loadgen
