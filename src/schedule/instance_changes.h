// SPDX-License-Identifier: Apache-2.0
// Adds and removes instances while a model serves requests: new ones are started before anything
// changes; removed ones are destroyed by a separate thread, as soon as nothing is bound to them.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "schedule/instance_change.h"
#include "schedule/instance_set.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// Thread-safe, except for Apply.
class InstanceChanges {
 public:
  // Both arguments outlive this object.
  InstanceChanges(InstanceSet& set, RateLimiter& limiter) : set_(set), limiter_(limiter) {}

  // Implements InstanceHost::ChangeInstances; also adds the first instances. REQUIRES: one call at
  // a time.
  base::Status Apply(InstanceChange change) NEREID_EXCLUDES(set_.mutex());
  // Waits for the thread that destroys removed instances. REQUIRES: InstanceSet::EndThreads was
  // called.
  void Join() { retirer_.Join(); }

 private:
  // Makes instances with their claims, not started. Fails with the first error of a claim.
  base::Result<PooledInstances> Make(std::vector<NewInstance> instances);
  // Initialises and warms up; returns the first failure. What had been started by then waits to be
  // dropped.
  base::Status Start(const PooledInstances& instances);
  // Makes and starts `instances`, and puts them in the place of `removed`. After an error nothing
  // has changed.
  base::Status Replace(const std::vector<const core::Instance*>& removed,
                       std::vector<NewInstance> instances) NEREID_EXCLUDES(set_.mutex());
  // Lets the instances of `added`, which are started, take work, and waits for the end of `removed`
  // as far as that is near. After an error nothing has changed.
  base::Status Switch(const std::vector<const core::Instance*>& removed, PooledInstances& added)
      NEREID_EXCLUDES(set_.mutex());
  // Starts the thread that destroys leaving instances, unless it is running. It looks for the first
  // one when the lock is released.
  base::Status StartRetirer() NEREID_REQUIRES(set_.mutex());
  // Ends instances that were started but will not be used.
  void Drop(const PooledInstances& instances) NEREID_EXCLUDES(set_.mutex());
  // The work of the thread that destroys leaving instances.
  void RetireLeaving() NEREID_EXCLUDES(set_.mutex());

  InstanceSet& set_;
  RateLimiter& limiter_;
  bool is_retiring_ NEREID_GUARDED_BY(set_.mutex()) = false;  // the thread below is running
  base::Thread retirer_;
};

}  // namespace nereid::schedule
