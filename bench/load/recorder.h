// SPDX-License-Identifier: Apache-2.0
// The results of a load: counts and latencies, printed as one JSON object.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace nereid::bench {

using Clock = std::chrono::steady_clock;

Clock::duration Seconds(double seconds);

// Collects the results. Confined to one thread.
class Recorder {
 public:
  // Sets the measured time. Latencies and rates include only requests begun between `from` and
  // `to`; everything else counts all requests.
  void Measure(Clock::time_point from, Clock::time_point to);
  // Ends the measured time early.
  void EndAt(Clock::time_point to) { to_ = to; }

  // Records a complete request with its number of responses, the first of which arrived at `first`.
  void Answered(Clock::time_point since, Clock::time_point first, Clock::time_point now,
                uint64_t responses);
  // Records responses that did not arrive.
  void Lost(uint64_t responses) { lost_ += responses; }
  // Records that no response arrived for a long time, and the load ended early.
  void Stalled() { stalled_ = true; }

  uint64_t answered() const { return all_; }

  // Prints the results. For an open loop, `late` is the longest queue of requests that waited for a
  // free connection, and `unsent` its length at the end.
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
