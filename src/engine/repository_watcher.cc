// SPDX-License-Identifier: Apache-2.0
#include "engine/repository_watcher.h"

#include <algorithm>
#include <utility>

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;

base::TimePoint After(milliseconds interval) {
  if (interval.count() == 0) return base::TimePoint::max();  // never
  return std::chrono::steady_clock::now() + interval;
}

bool IsDue(base::TimePoint when) { return std::chrono::steady_clock::now() >= when; }

}  // namespace

RepositoryWatcher::RepositoryWatcher(const repository::Store& store, WatchIntervals intervals,
                                     Actions actions)
    : intervals_(intervals), actions_(std::move(actions)), watch_(store), tasks_(actions_.wishes) {}

void RepositoryWatcher::Begin() {
  if (intervals_.looks.count() == 0) return;
  GenerationWatch::News news = watch_.Look(actions_.repositories(), stop_.get_token());
  first_ = std::move(news.asked);
  actions_.keep_out(watch_.Unwanted());
}

void RepositoryWatcher::FulfilFirst() {
  for (const auto& [model, is_loaded] : std::exchange(first_, {})) tasks_.Add(model, is_loaded);
  tasks_.WaitUntilIdle();
}

void RepositoryWatcher::Start() {
  if (intervals_.polls.count() == 0 && intervals_.looks.count() == 0) return;
  base::MutexLock lock(mutex_);
  if (stop_.stop_requested()) return;
  is_running_ = true;
  thread_ = base::Thread("poll", [this] { Run(); });
}

bool RepositoryWatcher::Stop(base::TimePoint deadline) {
  {
    base::MutexLock lock(mutex_);
    stop_.request_stop();
    changed_.NotifyAll();
    while (is_running_) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    if (is_running_) return false;
  }
  thread_.Join();
  return true;
}

void RepositoryWatcher::Run() {
  base::TimePoint next_poll = After(intervals_.polls);
  base::TimePoint next_look = After(intervals_.looks);
  base::MutexLock lock(mutex_);
  while (!stop_.stop_requested()) {
    if (changed_.WaitUntil(mutex_, std::min(next_poll, next_look))) continue;
    if (stop_.stop_requested()) break;
    mutex_.Unlock();
    bool must_poll = IsDue(next_poll);
    if (IsDue(next_look)) {
      must_poll |= Look();
      next_look = After(intervals_.looks);
    }
    if (must_poll && actions_.poll) actions_.poll();
    if (must_poll) next_poll = After(intervals_.polls);
    mutex_.Lock();
  }
  is_running_ = false;
  changed_.NotifyAll();
}

bool RepositoryWatcher::Look() {
  const GenerationWatch::News news = watch_.Look(actions_.repositories(), stop_.get_token());
  if (!news.is_changed) return false;
  actions_.keep_out(watch_.Unwanted());
  if (actions_.wishes.fulfil) {
    for (const auto& [model, is_loaded] : news.asked) tasks_.Add(model, is_loaded);
  }
  return true;
}

}  // namespace nereid::engine
