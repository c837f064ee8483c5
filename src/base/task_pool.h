// SPDX-License-Identifier: Apache-2.0
// A few threads for slow work: loading and unloading models, parsing large messages, waiting for a
// response cache. Threads start when there is work and end when there is none.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/unique_function.h"

namespace nereid::base {

// Thread-safe.
class TaskPool {
 public:
  // Threads are called `name` and a number. `max_threads` is at least one. A thread without work
  // ends after `idle_time`: work that comes often should not start a thread each time.
  TaskPool(std::string name, size_t max_threads, nanoseconds idle_time = nanoseconds(0));
  // Finishes every posted task. Meanwhile only the tasks themselves may post.
  ~TaskPool();

  // Runs `task` on one of the threads. Tasks start in the order of posting as threads become free.
  // Throws std::system_error if there is no thread and none can be started.
  void Post(UniqueFunction<void()> task);
  // Waits until all posted tasks are finished; returns false if `deadline` passes first.
  bool WaitUntilIdle(TimePoint deadline);

 private:
  void Work(size_t slot);
  // Waits until there is a task, and returns it; returns nothing if the thread should end.
  UniqueFunction<void()> Take(size_t slot) NEREID_REQUIRES(mutex_);

  const std::string name_;
  const nanoseconds idle_time_;
  Mutex mutex_;
  std::deque<UniqueFunction<void()>> tasks_ NEREID_GUARDED_BY(mutex_);
  std::vector<Thread> threads_
      NEREID_GUARDED_BY(mutex_);  // by slot; joinable if a thread was started
  std::vector<bool> is_working_
      NEREID_GUARDED_BY(mutex_);  // by slot: whether its thread still runs
  size_t unfinished_ NEREID_GUARDED_BY(mutex_) = 0;
  CondVar idle_;
  CondVar posted_;
  size_t starting_ NEREID_GUARDED_BY(mutex_) = 0;  // threads that have not taken a task yet
  size_t resting_ NEREID_GUARDED_BY(mutex_) = 0;   // threads that wait for a task
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::base
