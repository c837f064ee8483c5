// SPDX-License-Identifier: Apache-2.0
// The durations of the steps of one ensemble request, summed for the ensemble's own statistics.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/statistics.h"

namespace nereid::schedule {

// Thread-safe.
class EnsembleTimes {
 public:
  void Reset();

  // A call of a step starts; its times are known, or there will be none (NoteSettled).
  void NoteStarted() { ++unsettled_; }
  void NoteSettled() { --unsettled_; }
  void Add(const core::ComputeTimes& times);

  // Whether the times of all calls so far are known.
  bool IsComplete() const { return unsettled_ == 0; }
  // Returns the sums as consecutive times from `start_ns`, because only durations are known.
  core::ComputeTimes Sum(uint64_t start_ns) const;

 private:
  // Incremented before a call is submitted and decremented after its times were added, so that a
  // thread which finds zero here sees all of them.
  std::atomic<uint32_t> unsettled_{0};
  std::atomic<uint64_t> input_ns_{0};
  std::atomic<uint64_t> infer_ns_{0};
  std::atomic<uint64_t> output_ns_{0};
};

}  // namespace nereid::schedule
