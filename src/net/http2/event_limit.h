// SPDX-License-Identifier: Apache-2.0
// How many events of a kind a client may cause: some at once, and some every second from then on.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nereid::http2 {

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class EventLimit {
 public:
  // The number of seconds whose events may come at once.
  static constexpr uint32_t kBurstSeconds = 5;

  EventLimit(uint32_t per_second, uint64_t now_ns)
      : per_second_(per_second), tokens_(burst()), counted_ns_(now_ns) {}

  // Called at each event. Returns false if that is one too many.
  bool OnEvent(uint64_t now_ns) {
    const double seconds = static_cast<double>(now_ns - counted_ns_) / 1e9;
    counted_ns_ = now_ns;
    tokens_ = std::min(burst(), tokens_ + seconds * per_second_) - 1;
    return tokens_ >= 0;
  }

 private:
  double burst() const { return static_cast<double>(per_second_) * kBurstSeconds; }

  const uint32_t per_second_;
  double tokens_;
  uint64_t counted_ns_;
};

}  // namespace nereid::http2
