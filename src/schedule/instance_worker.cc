// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_worker.h"

#include <utility>

namespace nereid::schedule {

void InstanceWorker::Run() {
  instance_.heartbeat.Start();
  set_.mutex().Lock();
  while (true) {
    if (Work()) continue;
    if (set_.MayEnd(instance_)) break;
    if (GiveBack() || WaitForWork()) continue;
    base::ThreadReaper& reaper = set_.reaper();
    base::Thread self = instance_.thread.Leave(set_.mutex());
    set_.NoteThreadEnded(instance_);
    instance_.heartbeat.Rest();
    set_.mutex().Unlock();
    // The set may be destroyed now. The next request starts another thread.
    return reaper.Leave(std::move(self));
  }
  instance_.thread.SetEnded(set_.mutex());
  set_.NoteThreadEnded(instance_);
  instance_.heartbeat.Rest();
  set_.mutex().Unlock();
  // Nothing else can run on this instance, and its end may take long.
  instance_.claim.Give();
  instance_.instance->FinalizeOnThread();
}

bool InstanceWorker::Work() {
  PooledInstance::State& state = instance_.state.Under(set_.mutex());
  if (state.is_begun) {
    EndBegun();
    return true;
  }
  if (state.is_busy || set_.is_ending() || !set_.HasWaiting() || set_.IsLeftToReactor(instance_) ||
      !set_.TakeBatch(instance_, base::NowNs())) {
    return false;
  }
  // More than this batch waits: another instance may take it meanwhile.
  PendingWake wake;
  set_.WakeForWork(&wake);
  set_.mutex().Unlock();
  wake.Send();
  instance_.heartbeat.Rest();
  set_.Execute(instance_);
  instance_.heartbeat.Start();
  set_.mutex().Lock();
  set_.Account(instance_);
  return true;
}

void InstanceWorker::EndBegun() {
  instance_.state.Under(set_.mutex()).is_begun = false;
  set_.mutex().Unlock();
  instance_.heartbeat.Rest();
  instance_.instance->End();
  instance_.heartbeat.Start();
  instance_.execution.duration_ns = base::NowNs() - instance_.execution.taken_ns;
  set_.mutex().Lock();
  set_.Account(instance_);
}

bool InstanceWorker::GiveBack() {
  if (!instance_.claim.is_limited() || instance_.state.Under(set_.mutex()).is_busy) return false;
  // This instance waits for resources that others hold; another one may need other resources, or
  // none.
  if (instance_.claim.is_in_line()) set_.WakeForWork();
  if (!set_.HoldsInVain(instance_)) return false;
  set_.mutex().Unlock();
  instance_.claim.Give();
  set_.mutex().Lock();
  return true;
}

bool InstanceWorker::WaitForWork() {
  const PooledInstance::State& state = instance_.state.Under(set_.mutex());
  uint64_t until_ns = 0;
  if (!state.is_busy && set_.HasWaiting() && !set_.IsOver(instance_)) {
    const BatchDecision decision = set_.Decide(instance_);
    // The batch became runnable after TakeBatch, and no other event will say so. An instance that
    // waits in line for resources is woken by the grant.
    if (decision.request_count > 0 && !instance_.claim.is_in_line() && !set_.is_ending() &&
        !set_.IsLeftToReactor(instance_)) {
      return true;
    }
    until_ns = decision.look_again_at_ns.value_or(0);
  }
  set_.NotifyIdle();
  if (until_ns != 0 || state.is_busy || instance_.claim.is_limited() ||
      !instance_.instance->runs_on_any_thread()) {
    instance_.heartbeat.Rest();
    instance_.thread.Wait(set_.mutex(), until_ns);
    instance_.heartbeat.Start();
    return true;
  }
  instance_.heartbeat.Rest();
  const bool is_woken = instance_.thread.WaitFor(set_.mutex(), set_.options().idle_thread_lifetime);
  instance_.heartbeat.Start();
  return is_woken || state.is_busy || set_.is_ending();
}

}  // namespace nereid::schedule
