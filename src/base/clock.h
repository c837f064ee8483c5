// SPDX-License-Identifier: Apache-2.0
// Monotonic time. Code that depends on time takes readings as arguments, so that tests choose them.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace nereid::base {

using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::nanoseconds;

// Nanoseconds of the monotonic clock, the unit of all statistics.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// The same clock, up to a few milliseconds late: for what is read with every request and need not
// be exact.
inline uint64_t CoarseNowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace nereid::base
