// SPDX-License-Identifier: Apache-2.0
// Stops runs that take too long.
#pragma once

#include <ctime>

#include <chrono>
#include <thread>

#include "backend_kit/mutex.h"
#include "onnxruntime_backend/ort.h"
#include "onnxruntime_backend/probe_limits.h"

namespace nereid::onnxruntime {

// Stops the current run when the processor time of the thread that made this is used up, or the
// total time. Thread-compatible.
class Watchdog {
 public:
  // All runs use `options`, which outlive this.
  Watchdog(OrtRunOptions* options, const ProbeLimits& limits);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool IsOver() const { return Left() <= std::chrono::nanoseconds(0); }

 private:
  // Time is not over for at least this long, because a thread uses at most one processor.
  std::chrono::nanoseconds Left() const;
  void Watch();

  OrtRunOptions* const options_;
  const std::chrono::nanoseconds wall_end_;
  clockid_t cpu_clock_ = CLOCK_MONOTONIC;
  std::chrono::nanoseconds cpu_end_{0};
  backend::Mutex mutex_;
  backend::CondVar done_;
  bool is_done_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace nereid::onnxruntime
