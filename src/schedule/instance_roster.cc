// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_roster.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"

namespace nereid::schedule {

void InstanceRoster::Admit(base::Mutex& mutex, PooledInstances added) {
  const uint64_t now_ns = base::NowNs();
  std::set<size_t> taken;
  for (const auto& instance : instances_) taken.insert(instance->state.Under(mutex).index);
  size_t index = 0;
  for (auto& instance : added) {
    while (taken.contains(index)) ++index;
    PooledInstance::State& state = instance->state.Under(mutex);
    state.index = index++;
    state.id = ++last_id_;
    source_.AddInstance(state.index, now_ns);
    instance->thread.Admit(mutex);
    instances_.push_back(std::move(instance));
  }
}

void InstanceRoster::ExpectToLeave(const std::vector<const core::Instance*>& instances,
                                   bool is_expected) {
  for (const auto& instance : instances_) {
    if (std::ranges::find(instances, instance->instance.get()) == instances.end()) continue;
    instance->claim.SetLeaving(is_expected);
  }
}

std::vector<uint64_t> InstanceRoster::Retire(base::Mutex& mutex,
                                             const std::vector<const core::Instance*>& removed) {
  std::vector<uint64_t> ids;
  for (const auto& instance : instances_) {
    if (std::ranges::find(removed, instance->instance.get()) == removed.end()) continue;
    PooledInstance::State& state = instance->state.Under(mutex);
    state.is_leaving = true;
    instance->open.Watch();
    source_.RetireInstance(state.index);
    leaving_[state.id] = state.index;
    ids.push_back(state.id);
  }
  return ids;
}

bool InstanceRoster::IsGoneOrBound(const base::Mutex& mutex, uint64_t id) const {
  const auto found = leaving_.find(id);
  if (found == leaving_.end() || !source_.IsReleased(found->second)) return true;
  return std::ranges::any_of(instances_, [&](const auto& instance) NEREID_REQUIRES(mutex) {
    const PooledInstance::State& state = instance->state.Under(mutex);
    return state.id == id && !state.is_busy && !instance->open.empty();
  });
}

std::unique_ptr<PooledInstance> InstanceRoster::TakeRetired(base::Mutex& mutex) {
  const auto is_retired = [this, &mutex](const auto& instance) NEREID_REQUIRES(mutex) {
    return !instance->state.Under(mutex).is_busy && !instance->thread.exists(mutex) &&
           IsDone(mutex, *instance);
  };
  const auto found = std::ranges::find_if(instances_, is_retired);
  if (found == instances_.end()) return nullptr;
  std::unique_ptr<PooledInstance> retired = std::move(*found);
  instances_.erase(found);
  retired->state.Under(mutex).is_out = true;
  return retired;
}

}  // namespace nereid::schedule
