// SPDX-License-Identifier: Apache-2.0
#include "http_client/retry.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "base/mutex.h"

namespace nereid::http_client {
namespace {

// Returns after `time`, or when `stop` is requested.
void WaitFor(std::chrono::milliseconds time, const std::stop_token& stop) {
  const base::TimePoint end = std::chrono::steady_clock::now() + time;
  base::Mutex mutex;
  base::CondVar stopped;
  const std::stop_callback on_stop(stop, [&] {
    base::MutexLock lock(mutex);
    stopped.NotifyOne();
  });
  base::MutexLock lock(mutex);
  while (!stop.stop_requested() && stopped.WaitUntil(mutex, end)) {
  }
}

}  // namespace

bool MayPass(int status) { return status >= 500 || status == 429 || status == 408; }

Attempts::Attempts(RetryPolicy policy, std::stop_token stop)
    : policy_(policy), stop_(std::move(stop)), pause_(policy.first_pause) {}

bool Attempts::Next() {
  if (number_ >= policy_.attempts || stop_.stop_requested()) return false;
  ++number_;
  return true;
}

void Attempts::Restart() {
  number_ = 1;
  pause_ = policy_.first_pause;
}

void Attempts::Pause() {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<int64_t> spread(pause_.count() / 2, pause_.count());
  WaitFor(std::chrono::milliseconds(spread(random)), stop_);
  pause_ = std::min(pause_ * 2, policy_.longest_pause);
}

}  // namespace nereid::http_client
