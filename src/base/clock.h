// SPDX-License-Identifier: Apache-2.0
// Monotonic time. Code that depends on time takes readings as arguments, so that tests choose them.
#pragma once

#include <chrono>
#include <cstdint>

namespace nereid::base {

using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::nanoseconds;

// Nanoseconds of the monotonic clock, the unit of all statistics.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace nereid::base
