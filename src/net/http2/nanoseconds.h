// SPDX-License-Identifier: Apache-2.0
// Configured durations and points in time as clock readings.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "http2/deadlines.h"

namespace nereid::http2 {

// A duration that does not fit becomes one that never ends, but may be added to a clock reading.
inline uint64_t Ns(std::chrono::milliseconds duration) {
  const int64_t ms = duration.count();
  if (ms <= 0) return 0;
  uint64_t ns;
  return __builtin_mul_overflow(static_cast<uint64_t>(ms), 1'000'000u, &ns) ? kNever / 2 : ns;
}

inline uint64_t Ns(base::TimePoint time) {
  return static_cast<uint64_t>(std::max<int64_t>(0, time.time_since_epoch().count()));
}

}  // namespace nereid::http2
