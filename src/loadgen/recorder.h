// SPDX-License-Identifier: Apache-2.0
// What a load has measured, in intervals of equal length: how much these differ tells how far a
// result can be trusted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "loadgen/histogram.h"

namespace nereid::loadgen {

// The requests of an interval.
struct Interval {
  uint64_t succeeded = 0;  // of those that ended in it
  Histogram latencies;     // of its requests that succeeded
};

// Confined to one thread. Requests of the warm-up and of the time after the measurement are told as
// well, and left out.
class Recorder {
 public:
  // The measurement lasts from `from` until `to`.
  Recorder(base::TimePoint from, base::TimePoint to, base::nanoseconds interval)
      : from_(from), to_(to), interval_(interval) {}

  // A request that was due at `due` has succeeded at `now`. `is_open`: in an open loop, a request's
  // latency belongs to the interval in which it was due, however late it ended, so that the slowest
  // requests are never left out; in a closed loop, to that in which it ended.
  void Succeeded(base::TimePoint due, base::TimePoint now, bool is_open);
  void Failed(base::TimePoint due, base::TimePoint now, bool is_open, std::string_view text);
  // A request of an open loop that has not ended by `now`, when the load gives up: its latency is
  // at least the time since.
  void Unfinished(base::TimePoint due, base::TimePoint now);

  // Adds what another thread has measured with the same times.
  void Add(const Recorder& other);

  // The number of requests that ended within the measurement.
  uint64_t ended() const { return ended_; }
  // When the last of these ended; `from` if there is none.
  base::TimePoint last_end() const { return last_end_; }
  const std::vector<Interval>& intervals() const { return intervals_; }
  // How often requests failed, by text.
  const std::map<std::string, uint64_t, std::less<>>& errors() const { return errors_; }
  uint64_t unfinished() const { return unfinished_; }

 private:
  bool IsMeasured(base::TimePoint time) const { return time >= from_ && time < to_; }
  // Returns the interval of a time that is measured.
  Interval& At(base::TimePoint time);
  void CountEnd(base::TimePoint now);
  void CountErrors(std::string_view text, uint64_t count);

  base::TimePoint from_;
  base::TimePoint to_;
  base::nanoseconds interval_;
  std::vector<Interval> intervals_;
  std::map<std::string, uint64_t, std::less<>> errors_;
  uint64_t ended_ = 0;
  uint64_t unfinished_ = 0;
  base::TimePoint last_end_ = from_;
};

}  // namespace nereid::loadgen
