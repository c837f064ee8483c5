// SPDX-License-Identifier: Apache-2.0
#include "base/timers.h"

#include <algorithm>

#include "base/no_wait.h"

namespace nereid::base {

Timers::Timers(Watchdog* watchdog) {
  if (watchdog == nullptr) return;
  watch_ = watchdog->Add({.heartbeat = heartbeat_, .kind = "scheduler", .name = "timers"});
}

Timers::~Timers() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.NotifyAll();
  }
  thread_.Join();
}

void Timers::Run() {
  const NoWaitScope no_wait;
  mutex_.Lock();
  while (!is_ending_) {
    if (armed_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const auto [at_ns, timer] = *armed_.begin();
    if (at_ns > NowNs()) {
      changed_.WaitUntil(mutex_, TimePoint(nanoseconds(static_cast<int64_t>(at_ns))));
      continue;
    }
    armed_.erase(armed_.begin());
    timer->at_ns_ = 0;
    running_ = timer;
    mutex_.Unlock();
    heartbeat_.Start();
    timer->callback_();
    heartbeat_.Rest();
    mutex_.Lock();
    // running_ is already null if the callback destroyed its timer.
    running_ = nullptr;
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

Timer::Timer(Timers& timers, std::function<void()> callback)
    : timers_(timers), callback_(std::move(callback)) {}

Timer::~Timer() {
  MutexLock lock(timers_.mutex_);
  if (at_ns_ != 0) timers_.armed_.erase({at_ns_, this});
  if (std::this_thread::get_id() == timers_.thread_.id()) return;
  while (timers_.running_ == this) timers_.changed_.Wait(timers_.mutex_);
}

void Timer::ArmAt(uint64_t monotonic_ns) {
  // Later times, which are 292 years away, would overflow the clock's arithmetic.
  constexpr uint64_t kLatestNs = INT64_MAX;
  const uint64_t at_ns = std::clamp<uint64_t>(monotonic_ns, 1, kLatestNs);
  MutexLock lock(timers_.mutex_);
  if (at_ns_ == at_ns) return;
  if (at_ns_ != 0) timers_.armed_.erase({at_ns_, this});
  at_ns_ = at_ns;
  timers_.armed_.insert({at_ns, this});
  if (!timers_.thread_.joinable()) timers_.thread_ = Thread("timers", [&t = timers_] { t.Run(); });
  if (timers_.armed_.begin()->second == this) timers_.changed_.NotifyAll();
}

}  // namespace nereid::base
