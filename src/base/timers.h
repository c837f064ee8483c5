// SPDX-License-Identifier: Apache-2.0
// Calls back at points in time, on one thread of its own that starts with the first timer. For
// deadlines that must be kept while everything else is busy; callbacks are short and never wait.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"

namespace nereid::base {

class Timer;

// Thread-safe. Outlives its timers.
class Timers {
 public:
  Timers() = default;
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

 private:
  friend class Timer;

  void Run();

  Mutex mutex_;
  CondVar changed_;  // the thread's sleep may be too long, or a callback has returned
  std::set<std::pair<uint64_t, Timer*>> armed_ NEREID_GUARDED_BY(mutex_);
  Timer* running_ NEREID_GUARDED_BY(mutex_) = nullptr;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  Thread thread_;  // started under mutex_
};

// One callback, at most one point in time. Thread-safe. ArmAt and Disarm may be called under locks
// that the callback takes; the destructor may not: it waits for a callback that is running, unless
// the callback itself destroys the timer.
class Timer {
 public:
  Timer(Timers& timers, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces an earlier time. A time that has passed means at once.
  void ArmAt(uint64_t monotonic_ns);
  // A callback that has begun goes on.
  void Disarm();

 private:
  friend class Timers;

  Timers& timers_;
  const std::function<void()> callback_;
  uint64_t at_ns_ = 0;  // 0: not armed; guarded by timers_.mutex_
};

}  // namespace nereid::base
