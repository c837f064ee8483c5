// SPDX-License-Identifier: Apache-2.0
// Timers that call back on a thread of their own, which starts with the first timer. They are for
// deadlines that must be kept while everything else is busy; callbacks are short and never wait.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/watchdog.h"

namespace nereid::base {

class Timer;

// The thread of the timers. Thread-safe. Outlives its timers.
class Timers {
 public:
  // `watchdog`, if any, watches the thread, and outlives it.
  explicit Timers(Watchdog* watchdog = nullptr);
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

 private:
  friend class Timer;

  void Run();

  Mutex mutex_;
  CondVar changed_;  // signalled when the thread must wake earlier and when a callback has returned
  std::set<std::pair<uint64_t, Timer*>> armed_ NEREID_GUARDED_BY(mutex_);
  Timer* running_ NEREID_GUARDED_BY(mutex_) = nullptr;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  Heartbeat heartbeat_;  // of the callbacks
  Watchdog::Watch watch_;
  Thread thread_;  // started under mutex_
};

// A callback with at most one point in time. Thread-safe. ArmAt may be called under locks that the
// callback takes; the destructor may not, because it waits for a running callback, unless the
// callback itself destroys the timer.
class Timer {
 public:
  Timer(Timers& timers, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Sets the time and replaces an earlier setting. A time in the past means at once.
  void ArmAt(uint64_t monotonic_ns);

 private:
  friend class Timers;

  Timers& timers_;
  const std::function<void()> callback_;
  uint64_t at_ns_ = 0;  // 0: not armed; guarded by timers_.mutex_
};

}  // namespace nereid::base
