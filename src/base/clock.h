// SPDX-License-Identifier: Apache-2.0
// Monotonic time. Code that decides by time takes a Clock&, so that its tests own the hands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace nereid::base {

using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::nanoseconds;

// Nanoseconds of the monotonic clock, the unit of every statistic.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

// Stands still until it is told otherwise.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(nanoseconds(now_ns_.load())); }
  void Advance(nanoseconds by) { now_ns_ += by.count(); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace nereid::base
