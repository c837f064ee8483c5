// SPDX-License-Identifier: Apache-2.0
#include "base/periodic_thread.h"

#include <chrono>
#include <utility>

namespace nereid::base {

PeriodicThread::PeriodicThread(const std::string& name, nanoseconds period,
                               std::function<void()> function)
    : period_(period), function_(std::move(function)), thread_(name, [this] {
        do function_();
        while (Pause());
      }) {}

PeriodicThread::~PeriodicThread() {
  {
    MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  stopped_.NotifyAll();
}

bool PeriodicThread::Pause() {
  const TimePoint end = std::chrono::steady_clock::now() + period_;
  MutexLock lock(mutex_);
  while (!is_stopped_) {
    if (!stopped_.WaitUntil(mutex_, end)) return !is_stopped_;
  }
  return false;
}

}  // namespace nereid::base
