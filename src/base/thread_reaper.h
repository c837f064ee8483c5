// SPDX-License-Identifier: Apache-2.0
// Joins threads that end of their own accord, so that their stacks do not wait for whoever started
// them: each joins the one that left before it.
#pragma once

#include "base/mutex.h"
#include "base/thread.h"

namespace nereid::base {

// Thread-safe. Joins what is left when it goes.
class ThreadReaper {
 public:
  // To be called by `self` as the last thing that it does.
  void Leave(Thread self);
  // Waits until every thread that has left is gone. Not from one of them.
  void WaitForLeft();

 private:
  // Held while a thread is joined, which is past everything but its own end.
  Mutex mutex_;
  Thread last_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::base
