// SPDX-License-Identifier: Apache-2.0
// How many requests of a model may wait and execute at the same time, found out while it serves:
// the limit falls while requests spend much longer in the model's hands than their execution takes,
// and grows slowly while they do not. This is Netflix's and Envoy's gradient, with the measured
// time of executions where these have to estimate the latency without load. Pure logic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedule/service_times.h"

namespace nereid::schedule {

// Confined to the lock of its scheduler.
class ConcurrencyLimit {
 public:
  // Records an execution, at whose end `in_flight` requests, those executed included, were there.
  void Note(const PastExecution& execution, size_t in_flight, size_t instance_count);
  bool Admits(size_t in_flight) const { return in_flight < value(); }
  size_t value() const { return static_cast<size_t>(limit_); }

 private:
  static constexpr double kFirst = 32;

  double limit_ = kFirst;
  double execution_ns_ = 0;  // averages
  double stay_ns_ = 0;       // waiting and execution
};

}  // namespace nereid::schedule
