// SPDX-License-Identifier: Apache-2.0
// Which instances a model has, and which of them are leaving. The lock that guards all this is that
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
  // `source`, which is told of the changes, outlives the roster.
  explicit InstanceRoster(WorkSource& source) : source_(source) {}

  const PooledInstances& instances() const { return instances_; }

  // The instances take work from now on. Each gets the lowest number that is free.
  void Admit(base::Mutex& mutex, PooledInstances added) NEREID_REQUIRES(mutex);
  // Those of `removed` that are here take no more work but what is bound to them. Their ids.
  std::vector<uint64_t> Retire(base::Mutex& mutex,
                               const std::vector<const core::Instance*>& removed)
      NEREID_REQUIRES(mutex);
  // Whether `instance` is leaving and nothing is bound to it any more.
  bool IsOver(const base::Mutex& mutex, const PooledInstance& instance) const
      NEREID_REQUIRES(mutex) {
    const PooledInstance::State& state = instance.state.Under(mutex);
    return state.is_leaving && source_.IsReleased(state.index);
  }
  // Whether an instance that was retired is destroyed, or has to wait for what is bound to it.
  bool IsGoneOrBound(uint64_t id) const;
  bool has_leaving() const { return !leaving_.empty(); }
  // Takes out an instance that is over, idle and without a thread; null when there is none. Forget
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
