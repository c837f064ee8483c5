// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_changes.h"

#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "schedule/start_thread.h"

namespace nereid::schedule {

base::Result<PooledInstances> InstanceChanges::Make(std::vector<NewInstance> instances) {
  PooledInstances made;
  for (NewInstance& added : instances) {
    auto instance = set_.Make(std::move(added.instance), added.claim.has_value());
    if (added.claim) {
      added.claim->on_grant = [this, raw = instance.get()] {
        base::MutexLock lock(set_.mutex());
        set_.WakeGranted(*raw);
      };
      NEREID_ASSIGN_OR_RETURN(auto claim, limiter_.Register(*std::move(added.claim)));
      instance->claim = InstanceClaim(std::move(claim));
    }
    made.push_back(std::move(instance));
  }
  return made;
}

base::Status InstanceChanges::Start(const PooledInstances& instances) {
  const InstancePoolOptions& options = set_.options();
  std::vector<std::future<base::Status>> starting;
  for (const auto& instance : instances) {
    if (instance->instance->runs_on_any_thread()) {
      if (options.warm_up) NEREID_RETURN_IF_ERROR(options.warm_up(*instance->instance));
      continue;
    }
    starting.push_back(instance->thread.Start(set_.mutex(), options.warm_up));
    if (!options.starts_in_parallel) NEREID_RETURN_IF_ERROR(starting.back().get());
  }
  if (!options.starts_in_parallel) return base::OkStatus();
  // Waits for all, because each started instance is in use until then.
  base::Status first_failure;
  for (auto& started : starting) {
    base::Status status = started.get();
    if (first_failure.ok()) first_failure = std::move(status);
  }
  return first_failure;
}

void InstanceChanges::Drop(const PooledInstances& instances) {
  {
    base::MutexLock lock(set_.mutex());
    for (const auto& instance : instances) instance->thread.Drop(set_.mutex());
  }
  for (const auto& instance : instances) {
    instance->thread.Join();
    instance->claim.Reset();
  }
}

base::Status InstanceChanges::Apply(InstanceChange change) {
  NEREID_RETURN_IF_ERROR(set_.Prepare());
  set_.ExpectToLeave(change.removed, true);
  base::Status status = Replace(change.removed, std::move(change.added));
  if (!status.ok()) set_.ExpectToLeave(change.removed, false);
  return status;
}

base::Status InstanceChanges::Replace(const std::vector<const core::Instance*>& removed,
                                      std::vector<NewInstance> instances) {
  NEREID_ASSIGN_OR_RETURN(PooledInstances added, Make(std::move(instances)));
  base::Status status = Start(added);
  if (status.ok()) status = Switch(removed, added);
  if (!status.ok()) Drop(added);
  return status;
}

base::Status InstanceChanges::Switch(const std::vector<const core::Instance*>& removed,
                                     PooledInstances& added) {
  base::MutexLock lock(set_.mutex());
  if (!removed.empty()) NEREID_RETURN_IF_ERROR(StartRetirer());
  set_.Admit(std::exchange(added, {}));
  const std::vector<uint64_t> leaving = set_.Retire(removed);
  set_.WakeForWork();
  // Waits for instances whose end is near; the others are destroyed later.
  set_.WaitUntilGoneOrBound(leaving);
  return base::OkStatus();
}

base::Status InstanceChanges::StartRetirer() {
  if (is_retiring_) return base::OkStatus();
  retirer_.Join();  // a thread that has finished
  NEREID_ASSIGN_OR_RETURN(retirer_, StartThread("retire", [this] { RetireLeaving(); }));
  is_retiring_ = true;
  return base::OkStatus();
}

void InstanceChanges::RetireLeaving() {
  set_.mutex().Lock();
  while (std::unique_ptr<PooledInstance> retired = set_.WaitForRetired()) {
    const uint64_t id = retired->state.Under(set_.mutex()).id;
    set_.mutex().Unlock();
    retired->thread.Join();
    // Threads that have left may still run destructors of a plug-in's thread-local objects.
    set_.reaper().WaitForLeft();
    retired->claim.Reset();
    retired.reset();
    set_.mutex().Lock();
    set_.ForgetRetired(id);
  }
  is_retiring_ = false;
  set_.mutex().Unlock();
}

}  // namespace nereid::schedule
