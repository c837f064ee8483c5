// SPDX-License-Identifier: Apache-2.0
// A load on a server: prepared requests, sent in a closed loop (the next when the response has
// arrived) or in an open one (at times of their own, as independent users do), by a few threads
// with an event loop each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/arrivals.h"
#include "loadgen/recorder.h"
#include "loadgen/target.h"

namespace nereid::loadgen {

// How much is sent, and for how long.
struct LoadPlan {
  size_t calls = 1;  // in flight at the same time; in an open loop, at most
  double rate = 0;   // requests a second of an open loop; 0: a closed loop
  Distribution distribution = Distribution::kPoisson;
  base::nanoseconds warmup{0};
  base::nanoseconds duration{0};  // of the measurement; ignored if `requests` is set
  uint64_t requests = 0;          // ends the measurement after so many; 0: the duration does
  base::nanoseconds interval{0};  // see Recorder
  base::nanoseconds timeout{0};   // after which a request has failed
  size_t threads = 1;
  uint64_t seed = 1;  // of a Poisson distribution
};

struct LoadResult {
  Recorder measured;
  double seconds = 0;  // that the measurement took
  // The share of its time that the busiest thread of the load was working rather than waiting. Near
  // 1, the load itself is what limits the figures.
  double busy = 0;
  // UNAVAILABLE if the server went away, CANCELLED if `stop` stopped.
  base::Status status;
};

// All are called by the thread that runs the load, and may be empty.
struct LoadHooks {
  // Every tenth of a second, with the share of the time (or requests) that is over.
  std::function<void(double share)> on_progress;
  std::function<void()> on_measuring;  // after the warm-up
  std::function<void()> on_measured;   // after the measurement
  std::stop_token stop;
};

// Sends `requests` in turn until the plan is fulfilled: whole HTTP requests, or messages in gRPC's
// frame, that must go to `target`. REQUIRES: there is at least one request, and a plan with at
// least one call and one thread, an interval and a timeout.
LoadResult RunLoad(const Target& target, const std::vector<std::string>& requests,
                   const LoadPlan& plan, const LoadHooks& hooks);

}  // namespace nereid::loadgen
