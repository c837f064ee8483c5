// SPDX-License-Identifier: Apache-2.0
#include "base/task_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace nereid::base {

TaskPool::TaskPool(std::string name, size_t max_threads, nanoseconds idle_time)
    : name_(std::move(name)),
      idle_time_(idle_time),
      threads_(std::max<size_t>(max_threads, 1)),
      is_working_(std::max<size_t>(max_threads, 1), false) {}

TaskPool::~TaskPool() {
  // A task may post another task, which may start a thread again in a slot that was already joined.
  while (true) {
    Thread thread;
    {
      MutexLock lock(mutex_);
      is_ending_ = true;
      posted_.NotifyAll();
      const auto running = std::ranges::find_if(threads_, &Thread::joinable);
      if (running == threads_.end()) return;
      thread = std::move(*running);
    }
    thread.Join();
  }
}

void TaskPool::Post(UniqueFunction<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  ++unfinished_;
  if (resting_ > 0) posted_.NotifyOne();
  if (starting_ + resting_ >= tasks_.size()) return;
  const auto free = std::ranges::find(is_working_, false);
  if (free == is_working_.end()) return;
  const auto slot = static_cast<size_t>(free - is_working_.begin());
  // A thread that ran in this slot before no longer uses the pool, so joining it takes little time.
  threads_[slot].Join();
  try {
    threads_[slot] = Thread(name_ + "_" + std::to_string(slot), [this, slot] { Work(slot); });
  } catch (const std::system_error&) {
    // There may be no more threads now. One that is working runs the task later.
    if (std::ranges::find(is_working_, true) != is_working_.end()) return;
    tasks_.pop_back();
    --unfinished_;
    throw;
  }
  is_working_[slot] = true;
  ++starting_;
}

UniqueFunction<void()> TaskPool::Take(size_t slot) {
  const TimePoint deadline = std::chrono::steady_clock::now() + idle_time_;
  while (tasks_.empty()) {
    bool is_in_time = idle_time_ > nanoseconds(0) && !is_ending_;
    if (is_in_time) {
      ++resting_;
      is_in_time = posted_.WaitUntil(mutex_, deadline);
      --resting_;
    }
    if (!is_in_time && tasks_.empty()) {
      is_working_[slot] = false;
      return {};
    }
  }
  UniqueFunction<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void TaskPool::Work(size_t slot) {
  MutexLock lock(mutex_);
  --starting_;
  while (UniqueFunction<void()> task = Take(slot)) {
    mutex_.Unlock();
    task();
    task = {};
    mutex_.Lock();
    if (--unfinished_ == 0) idle_.NotifyAll();
  }
}

bool TaskPool::WaitUntilIdle(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (unfinished_ > 0) {
    if (!idle_.WaitUntil(mutex_, deadline)) return unfinished_ == 0;
  }
  return true;
}

}  // namespace nereid::base
