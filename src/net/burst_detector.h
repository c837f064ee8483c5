// SPDX-License-Identifier: Apache-2.0
// Detects output pieces that threads produce faster than they can be written one by one, as a model
// with many responses does. Such pieces are left to the reactor, which then writes several at a
// time: one write for all costs little more than one for each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nereid::net {

// Thread-safe. Concurrent pieces of several threads are counted only roughly, so that counting
// takes no locked instruction.
class BurstDetector {
 public:
  // Records a piece at `now_ns`, and returns whether it is part of a burst. The first pieces are
  // not, so that a thread with only a few need not wait for the reactor.
  bool IsInBurst(uint64_t now_ns) {
    const uint64_t gap_ns = now_ns - last_ns_.load(std::memory_order_relaxed);
    last_ns_.store(now_ns, std::memory_order_relaxed);
    const uint32_t before = gap_ns > kGapNs ? 0 : quick_ones_.load(std::memory_order_relaxed);
    quick_ones_.store(std::min(before + 1, kQuickOnes), std::memory_order_relaxed);
    return before >= kQuickOnes;
  }

 private:
  // A write takes about five microseconds.
  static constexpr uint64_t kGapNs = 20'000;
  static constexpr uint32_t kQuickOnes = 3;

  std::atomic<uint64_t> last_ns_{0};
  std::atomic<uint32_t> quick_ones_{0};
};

}  // namespace nereid::net
