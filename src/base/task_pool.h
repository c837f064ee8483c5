// SPDX-License-Identifier: Apache-2.0
// A few threads for work that takes its time: loading models, taking them apart, parsing what is
// large. They start when there is work and leave when there is none.
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
  // Threads are called `name` and a number. At least one.
  TaskPool(std::string name, size_t max_threads);
  // Finishes every task that was posted. Nobody may post meanwhile but the tasks themselves.
  ~TaskPool();

  // Runs `task` on one of the threads, in the order of posting as far as they are free.
  void Post(UniqueFunction<void()> task);
  // Waits until nothing that was posted is left; false when `deadline` passes first.
  bool WaitUntilIdle(TimePoint deadline);

 private:
  void Work(size_t slot);

  const std::string name_;
  Mutex mutex_;
  std::deque<UniqueFunction<void()>> tasks_ NEREID_GUARDED_BY(mutex_);
  std::vector<Thread> threads_ NEREID_GUARDED_BY(mutex_);   // by slot; joinable: started once
  std::vector<bool> is_working_ NEREID_GUARDED_BY(mutex_);  // whether the slot's thread still runs
  size_t unfinished_ NEREID_GUARDED_BY(mutex_) = 0;
  CondVar idle_;
  size_t starting_ NEREID_GUARDED_BY(mutex_) = 0;  // threads that have not taken a task yet
};

}  // namespace nereid::base
