// SPDX-License-Identifier: Apache-2.0
#include "python_backend/watch.h"

#include <pthread.h>

#include <algorithm>

namespace nereid::python {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kInterval{20};
constexpr std::chrono::seconds kRestingInterval{1};

}  // namespace

Watch::~Watch() {
  std::thread thread;
  {
    const backend::MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Watch::Add(std::weak_ptr<Watched> watched) {
  const backend::MutexLock lock(mutex_);
  watched_.push_back(std::move(watched));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.NotifyAll();
}

void Watch::WakeThread() {
  const backend::MutexLock lock(mutex_);
  is_resting_.store(false);
  changed_.NotifyAll();
}

std::vector<std::shared_ptr<Watched>> Watch::Living() {
  std::vector<std::shared_ptr<Watched>> living;
  std::erase_if(watched_, [&living](const std::weak_ptr<Watched>& watched) {
    std::shared_ptr<Watched> one = watched.lock();
    if (one == nullptr) return true;
    living.push_back(std::move(one));
    return false;
  });
  return living;
}

bool Watch::LookAtAll(const std::vector<std::shared_ptr<Watched>>& all) {
  bool again = false;
  for (const auto& one : all) again = one->Look() || again;
  return again;
}

void Watch::Run() {
  pthread_setname_np(pthread_self(), "worker-watch");
  for (;;) {
    std::vector<std::shared_ptr<Watched>> all;
    {
      const backend::MutexLock lock(mutex_);
      if (is_stopping_) return;
      all = Living();
    }
    // The second look comes after the flag, so that a request that did not see the flag is seen.
    bool again = LookAtAll(all);
    if (!again) {
      is_resting_.store(true);
      again = LookAtAll(all);
    }
    const bool must_look =
        std::ranges::any_of(all, [](const auto& one) { return one->needs_looks(); });
    // What is destroyed here may be the last of its kind, which takes time.
    all.clear();
    const backend::MutexLock lock(mutex_);
    if (again) {
      is_resting_.store(false);
      const Clock::time_point end = Clock::now() + kInterval;
      while (!is_stopping_ && changed_.WaitUntil(mutex_, end)) {
      }
    } else if (must_look) {
      const Clock::time_point end = Clock::now() + kRestingInterval;
      while (!is_stopping_ && is_resting_.load() && changed_.WaitUntil(mutex_, end)) {
      }
    } else {
      while (!is_stopping_ && is_resting_.load()) changed_.Wait(mutex_);
    }
    is_resting_.store(false);
  }
}

}  // namespace nereid::python
