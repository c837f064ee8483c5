// SPDX-License-Identifier: Apache-2.0
// How instances come and go while a model is served: new ones are started before anything changes;
// removed ones are destroyed by a thread of their own, as soon as nothing is bound to them.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "schedule/instance_change.h"
#include "schedule/instance_set.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// Thread-safe, but for Apply.
class InstanceChanges {
 public:
  // Both outlive the changes.
  InstanceChanges(InstanceSet& set, RateLimiter& limiter) : set_(set), limiter_(limiter) {}

  // As InstanceHost::ChangeInstances; the first instances come in this way, too. REQUIRES: one call
  // at a time.
  base::Status Apply(InstanceChange change) NEREID_EXCLUDES(set_.mutex());
  // Waits for the thread that destroys removed instances. REQUIRES: InstanceSet::EndThreads was
  // called.
  void Join() { retirer_.Join(); }

 private:
  // With their claims, and not started. The first error of a claim.
  base::Result<PooledInstances> Make(std::vector<NewInstance> instances);
  // Initialises and warms up; the first failure. What had been started by then waits to be dropped.
  base::Status Start(const PooledInstances& instances);
  // Ends what was started and is not to be used.
  void Drop(const PooledInstances& instances) NEREID_EXCLUDES(set_.mutex());
  // What the thread does that destroys what is leaving.
  void RetireLeaving() NEREID_EXCLUDES(set_.mutex());

  InstanceSet& set_;
  RateLimiter& limiter_;
  bool is_retiring_ NEREID_GUARDED_BY(set_.mutex()) = false;  // the thread below is at it
  base::Thread retirer_;
};

}  // namespace nereid::schedule
