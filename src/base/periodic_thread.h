// SPDX-License-Identifier: Apache-2.0
// A thread that does the same again and again.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace nereid::base {

// Calls a function at once, and again a period after each return. The destructor ends a pause, and
// waits for a call in progress.
class PeriodicThread {
 public:
  // The name is as for Thread.
  PeriodicThread(const std::string& name, nanoseconds period, std::function<void()> function);
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  // Returns false if this is being destroyed.
  bool Pause();

  const nanoseconds period_;
  const std::function<void()> function_;
  Mutex mutex_;
  CondVar stopped_;
  bool is_stopped_ NEREID_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace nereid::base
