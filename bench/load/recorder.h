// SPDX-License-Identifier: Apache-2.0
// What a load is measured by: counts and latencies, printed as one JSON object.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace nereid::bench {

using Clock = std::chrono::steady_clock;

Clock::duration Seconds(double seconds);

// Confined to one thread.
class Recorder {
 public:
  // Latencies and rates are of requests begun between `from` and `to`; all else counts everything.
  void Measure(Clock::time_point from, Clock::time_point to);
  // Ends the measured time early.
  void EndAt(Clock::time_point to) { to_ = to; }

  // One request was answered by so many responses, the first of them at `first`.
  void Answered(Clock::time_point since, Clock::time_point first, Clock::time_point now,
                uint64_t responses);
  // So many responses will not come any more.
  void Lost(uint64_t responses) { lost_ += responses; }
  // Nothing came for long, and the load ended early.
  void Stalled() { stalled_ = true; }

  uint64_t answered() const { return all_; }

  // Of an open loop, `late` is the longest queue of requests that waited for a free connection, and
  // `unsent` what was left of it in the end.
  void Print(uint64_t late, uint64_t unsent);

 private:
  Clock::time_point from_;
  Clock::time_point to_;
  uint64_t all_ = 0;
  uint64_t responses_ = 0;
  uint64_t measured_responses_ = 0;
  uint64_t lost_ = 0;
  bool stalled_ = false;
  std::vector<int64_t> latencies_ns_;
  std::vector<int64_t> first_ns_;
};

}  // namespace nereid::bench
