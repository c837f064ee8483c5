// SPDX-License-Identifier: Apache-2.0
// Tells when a thread brings pieces of output faster than they can be written one by one, as a model
// with many responses does. They are then left to the reactor, which finds several each time: one
// write for all of them costs little more than one for each.
#pragma once

#include <cstdint>

namespace nereid::net {

// Thread-compatible.
class Pace {
 public:
  // A piece comes at `now_ns`: whether it is one of many. The first ones are not, so that whoever has
  // only a few need not wait for the reactor.
  bool IsInBurst(uint64_t now_ns) {
    const uint64_t gap_ns = now_ns - last_ns_;
    last_ns_ = now_ns;
    if (gap_ns > kGapNs) quick_ones_ = 0;
    return quick_ones_++ >= kQuickOnes;
  }

 private:
  // A write takes about five microseconds.
  static constexpr uint64_t kGapNs = 20'000;
  static constexpr uint64_t kQuickOnes = 3;

  uint64_t last_ns_ = 0;
  uint64_t quick_ones_ = 0;
};

}  // namespace nereid::net
