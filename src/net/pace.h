// SPDX-License-Identifier: Apache-2.0
// Tells when threads bring pieces of output faster than they can be written one by one, as a model
// with many responses does. They are then left to the reactor, which finds several each time: one
// write for all of them costs little more than one for each.
#pragma once

#include <atomic>
#include <cstdint>

namespace nereid::net {

// Thread-safe. What several threads bring at once is counted only roughly.
class Pace {
 public:
  // A piece comes at `now_ns`: whether it is one of many. The first ones are not, so that whoever
  // has only a few need not wait for the reactor.
  bool IsInBurst(uint64_t now_ns) {
    const uint64_t gap_ns = now_ns - last_ns_.exchange(now_ns);
    if (gap_ns > kGapNs) quick_ones_.store(0);
    return quick_ones_.fetch_add(1) >= kQuickOnes;
  }

 private:
  // A write takes about five microseconds.
  static constexpr uint64_t kGapNs = 20'000;
  static constexpr uint32_t kQuickOnes = 3;

  std::atomic<uint64_t> last_ns_{0};
  std::atomic<uint32_t> quick_ones_{0};
};

}  // namespace nereid::net
