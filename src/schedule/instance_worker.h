// SPDX-License-Identifier: Apache-2.0
// The main function of an instance's own thread: it executes the work for the instance, sleeps
// while there is none, and ends when there will be none, or has been none for a while.
#pragma once

#include "schedule/instance_set.h"

namespace nereid::schedule {

// Confined to the thread of `instance`.
class InstanceWorker {
 public:
  // `instance` is in `set`, which outlives the thread.
  InstanceWorker(InstanceSet& set, PooledInstance& instance) : set_(set), instance_(instance) {}

  // Returns when the thread has to end. The set may be destroyed by then.
  void Run() NEREID_EXCLUDES(set_.mutex());

 private:
  // Executes something, while the lock is released. Returns false if there is nothing to do.
  bool Work() NEREID_REQUIRES(set_.mutex());
  // Ends the execution that a reactor has begun.
  void EndBegun() NEREID_REQUIRES(set_.mutex());
  // Releases resources that the instance has no work for, while the lock is released. Returns false
  // if there are none.
  bool GiveBack() NEREID_REQUIRES(set_.mutex());
  // Returns false if there was no work for so long that the thread has to end.
  bool WaitForWork() NEREID_REQUIRES(set_.mutex());

  InstanceSet& set_;
  PooledInstance& instance_;
};

}  // namespace nereid::schedule
