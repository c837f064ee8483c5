// SPDX-License-Identifier: Apache-2.0
// What the own thread of an instance does: it executes what there is for the instance, sleeps while
// there is nothing, and ends when there will be nothing, or has not been for a while.
#pragma once

#include "schedule/instance_set.h"

namespace nereid::schedule {

// Confined to the thread of `instance`.
class InstanceWorker {
 public:
  // `instance` is in `set`, which outlives the thread.
  InstanceWorker(InstanceSet& set, PooledInstance& instance) : set_(set), instance_(instance) {}

  // Returns when the thread is to end. The set may be gone then.
  void Run() NEREID_EXCLUDES(set_.mutex());

 private:
  // Executes something, while the lock is let go. False when there is nothing to do.
  bool Work() NEREID_REQUIRES(set_.mutex());
  // Ends the execution that a reactor has begun.
  void EndBegun() NEREID_REQUIRES(set_.mutex());
  // Gives back resources that the instance has no work for, while the lock is let go. False when
  // there are none.
  bool GiveBack() NEREID_REQUIRES(set_.mutex());
  // False: there was no work for so long that the thread is to end.
  bool WaitForWork() NEREID_REQUIRES(set_.mutex());

  InstanceSet& set_;
  PooledInstance& instance_;
};

}  // namespace nereid::schedule
