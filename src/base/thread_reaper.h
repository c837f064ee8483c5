// SPDX-License-Identifier: Apache-2.0
// Joins threads that end of their own accord, so that their stacks are freed before their starter
// ends. Each thread that leaves joins the one that left before it.
#pragma once

#include "base/mutex.h"
#include "base/thread.h"

namespace nereid::base {

// Thread-safe. The destructor joins the thread that left last.
class ThreadReaper {
 public:
  // A thread calls this with itself as its last action.
  void Leave(Thread self);
  // Waits until every thread that has left is joined. Must not be called by one of them.
  void WaitForLeft();

 private:
  // Held while a thread is joined. That thread has nothing left to do but end.
  Mutex mutex_;
  Thread last_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::base
