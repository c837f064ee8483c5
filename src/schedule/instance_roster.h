// SPDX-License-Identifier: Apache-2.0
// The instances of a model, and which of them are leaving. Everything here is guarded by the lock
// of the instances' pool. It is passed to each call, as to a CondVar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "core/scheduler.h"
#include "schedule/pooled_instance.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// Confined to the lock of its pool.
class InstanceRoster {
 public:
  // `source`, which is notified of the changes, outlives the roster.
  explicit InstanceRoster(WorkSource& source) : source_(source) {}

  const PooledInstances& instances() const { return instances_; }

  // Lets the instances take work from now on. Each gets the lowest free number.
  void Admit(base::Mutex& mutex, PooledInstances added) NEREID_REQUIRES(mutex);
  // Tells the rate limiter whether those of `instances` that are here will leave soon. REQUIRES:
  // the lock is held.
  void ExpectToLeave(const std::vector<const core::Instance*>& instances, bool is_expected);
  // Stops those of `removed` that are here from taking work, except what is bound to them. Returns
  // their ids.
  std::vector<uint64_t> Retire(base::Mutex& mutex,
                               const std::vector<const core::Instance*>& removed)
      NEREID_REQUIRES(mutex);
  // Returns whether `instance` is leaving and nothing is bound to it any more. It runs nothing
  // more.
  bool IsOver(const base::Mutex& mutex, const PooledInstance& instance) const
      NEREID_REQUIRES(mutex) {
    const PooledInstance::State& state = instance.state.Under(mutex);
    return state.is_leaving && (state.is_out || source_.IsReleased(state.index));
  }
  // Returns whether `instance` is over, and its backend has no request any more.
  bool IsDone(const base::Mutex& mutex, const PooledInstance& instance) const
      NEREID_REQUIRES(mutex) {
    return IsOver(mutex, instance) && instance.open.empty();
  }
  // Returns whether a retired instance is destroyed, or waits for what nobody can foretell: the end
  // of what is bound to it, or of requests that its backend kept when it returned.
  bool IsGoneOrBound(const base::Mutex& mutex, uint64_t id) const NEREID_REQUIRES(mutex);
  bool has_leaving() const { return !leaving_.empty(); }
  // Takes out an instance that is done, idle and without a thread; null if there is none. Forget
  // follows once it is destroyed.
  std::unique_ptr<PooledInstance> TakeRetired(base::Mutex& mutex) NEREID_REQUIRES(mutex);
  void Forget(uint64_t id) { leaving_.erase(id); }

 private:
  WorkSource& source_;
  PooledInstances instances_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, size_t> leaving_;  // numbers, by id
};

}  // namespace nereid::schedule
