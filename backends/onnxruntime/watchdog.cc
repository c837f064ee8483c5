// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/watchdog.h"

#include <pthread.h>

#include <algorithm>

namespace nereid::onnxruntime {

using std::chrono::nanoseconds;

namespace {

nanoseconds Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

Watchdog::Watchdog(OrtRunOptions* options, const ProbeLimits& limits)
    : options_(options), wall_end_(Read(CLOCK_MONOTONIC) + limits.wall_time) {
  if (pthread_getcpuclockid(pthread_self(), &cpu_clock_) != 0) {
    cpu_clock_ = CLOCK_MONOTONIC;
  }
  cpu_end_ = Read(cpu_clock_) + limits.cpu_time;
  thread_ = std::thread([this] { Watch(); });
}

Watchdog::~Watchdog() {
  {
    const backend::MutexLock lock(mutex_);
    is_done_ = true;
  }
  done_.NotifyOne();
  thread_.join();
}

nanoseconds Watchdog::Left() const {
  return std::min(wall_end_ - Read(CLOCK_MONOTONIC), cpu_end_ - Read(cpu_clock_));
}

void Watchdog::Watch() {
  constexpr nanoseconds kShortest = std::chrono::milliseconds(1);
  const backend::MutexLock lock(mutex_);
  while (!is_done_) {
    done_.WaitUntil(mutex_, backend::CondVar::Clock::now() + std::max(Left(), kShortest));
    if (!is_done_ && IsOver()) {
      FromOrt(Api().RunOptionsSetTerminate(options_)).Ignore();
      return;
    }
  }
}

}  // namespace nereid::onnxruntime
