// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/system_limits.h"
#include "base/thread.h"
#include "core/response.h"
#include "schedule/instance_worker.h"
#include "schedule/refuse.h"

namespace nereid::schedule {
namespace {

// Batches up to this size never grow the memory kept for them.
constexpr int64_t kReservedBatch = 1024;

}  // namespace

InstanceSet::InstanceSet(core::Model& model, WorkSource& source, const SchedulerContext& context,
                         InstancePoolOptions options)
    : model_(model),
      source_(source),
      reaper_(context.reaper),
      watchdog_(context.watchdog),
      options_(std::move(options)),
      policy_(options_.inline_budget, base::AvailableCpus(), options_.arrival_patience),
      roster_(source),
      shortage_(context.timers, model.name(), [this] {
        base::MutexLock lock(mutex_);
        // In the end, claims are reset without the lock.
        if (!is_ending_) WakeForWork();
      }) {}

// -- Executions. --

bool InstanceSet::TakeBatch(PooledInstance& instance, uint64_t now_ns, size_t max_requests) {
  PooledInstance::State& state = instance.state.Under(mutex_);
  if (state.is_leaving && IsOver(instance)) return false;
  const BatchDecision decision = source_.Decide(state.index, now_ns);
  if (decision.request_count == 0 || decision.request_count > max_requests) return false;
  if (!instance.claim.TryTake()) return false;
  PooledInstance::Execution& execution = instance.execution;
  source_.Take(state.index, decision, execution.batch);
  uint64_t taken = 0;
  uint32_t opened = 0;
  for (const core::RequestPtr& request : execution.batch) {
    request->times.batch_start_ns = now_ns;
    if (!request->is_padding) ++taken;
    // One that its backend gave back is counted already, by the same instance.
    if (request->open_in != nullptr) continue;
    request->open_in = &instance.open;
    ++opened;
  }
  instance.open.Add(opened);
  model_.statistics().RecordBatchClosed(decision.reason, taken);
  execution.taken_ns = now_ns;
  execution.is_watched = state.record.is_watched();
  execution.is_own = false;
  state.is_busy = true;
  ++busy_count_;
  if (told_executions_ > 0) [[unlikely]]
    TellReactors(instance);
  return true;
}

void InstanceSet::DropCancelled(PooledInstance::Execution& execution) {
  if (!options_.drops_cancelled) return;
  const auto is_cancelled = [](const core::RequestPtr& request) { return request->is_cancelled(); };
  if (std::ranges::none_of(execution.batch, is_cancelled)) [[likely]]
    return;
  // Requests of clients that have left are not computed.
  std::erase_if(execution.batch, [](core::RequestPtr& request) {
    if (!request->is_cancelled()) return false;
    Refuse(std::move(request), core::FailureReason::kCancelled, CancelledError());
    return true;
  });
}

uint64_t InstanceSet::Execute(PooledInstance& instance) {
  PooledInstance::Execution& execution = instance.execution;
  DropCancelled(execution);
  execution.request_count = execution.batch.size();
  const Stopwatch stopwatch(execution.is_watched, execution.taken_ns);
  if (!execution.batch.empty()) instance.instance->Execute(execution.batch);
  const uint64_t end_ns = base::NowNs();
  execution.duration_ns = stopwatch.PassedNs(end_ns);
  execution.batch.clear();
  if (instance.claim.is_limited()) {
    mutex_.Lock();
    const bool wants_more = source_.HasWaiting() && !IsOver(instance);
    mutex_.Unlock();
    instance.claim.Give(wants_more);
  }
  return end_ns;
}

void InstanceSet::Account(PooledInstance& instance) {
  PooledInstance::State& state = instance.state.Under(mutex_);
  state.record.Account(instance.execution.duration_ns, instance.execution.request_count);
  state.is_busy = false;
  --busy_count_;
  if (told_executions_ > 0) [[unlikely]]
    TellOfEnd(instance);
  source_.OnExecuted(state.index);
  // The instance's thread waits until nothing is executed any more.
  if (is_ending_ || state.is_leaving) instance.thread.Wake(mutex_);
  if (state.is_leaving) left_.NotifyAll();
  if (IsIdle()) NotifyIdle();
}

void InstanceSet::TellOfEnd(PooledInstance& instance) {
  --told_executions_;
  InlineRecord& record = instance.state.Under(mutex_).record;
  if (instance.execution.is_own) record.AccountOwn(instance.execution.duration_ns);
  TellReactors(instance);
}

void InstanceSet::TellReactors(const PooledInstance& instance) {
  const bool is_full = busy_count_ >= roster_.instances().size();
  const bool pays = is_full && policy_.may_wait_for(instance.state.Under(mutex_).record);
  const Meeting others = told_executions_ > 0 ? Meeting::kNoWait : Meeting::kNone;
  meeting_.store(pays ? Meeting::kBrieflyFull : others, std::memory_order_relaxed);
}

void InstanceSet::Begin(PooledInstance& instance) {
  PooledInstance::Execution& execution = instance.execution;
  DropCancelled(execution);
  execution.request_count = execution.batch.size();
  const bool is_over =
      execution.batch.empty() || instance.instance->Begin(execution.batch, policy_.patience());
  execution.batch.clear();
  execution.duration_ns = base::NowNs() - execution.taken_ns;
  PendingWake wake;  // sent after the lock is released
  base::MutexLock lock(mutex_);
  if (!is_over) {
    instance.state.Under(mutex_).is_begun = true;
    return instance.thread.Wake(mutex_, &wake);
  }
  Account(instance);
  WakeForWork(&wake);
}

// -- Which thread works. --

bool InstanceSet::Notify(PooledInstance& instance, PendingWake* pending) {
  if (IsBusy(instance) || is_ending_ || IsOver(instance)) return true;
  if (instance.thread.WakeOrStart(mutex_, pending)) [[likely]]
    return true;
  shortage_.Note();
  return false;
}

void InstanceSet::WakeForWork(PendingWake* pending) {
  if (has_claims_) WakeThoseInVain();
  if (is_ending_ || !source_.HasWaiting()) return;
  if (source_.is_instance_bound()) return WakeEachForWork(pending);
  WakeOneForWork(pending);
}

// One thread that is awake, or sleeps until the right moment, is enough.
void InstanceSet::WakeOneForWork(PendingWake* pending) {
  std::optional<BatchDecision> decision;
  PooledInstance* candidate = nullptr;
  for (const auto& instance : roster_.instances()) {
    if (!IsAvailable(*instance)) continue;
    if (IsLeftToReactor(*instance) || instance->thread.is_on_its_way(mutex_)) return;
    if (!decision) decision = Decide(*instance);
    const uint64_t looks_again_at_ns = instance->thread.looks_again_at_ns(mutex_);
    if (decision->request_count == 0) {
      if (!decision->look_again_at_ns) return;
      if (looks_again_at_ns != 0 && looks_again_at_ns <= *decision->look_again_at_ns) return;
    }
    if (candidate == nullptr || looks_again_at_ns != 0) candidate = instance.get();
  }
  if (candidate == nullptr || Notify(*candidate, pending)) return;
  // There can be no more threads now, but perhaps another instance has one.
  for (const auto& instance : roster_.instances()) {
    if (!IsAvailable(*instance) || !instance->thread.exists(mutex_)) continue;
    return instance->thread.Wake(mutex_, pending);
  }
}

void InstanceSet::WakeEachForWork(PendingWake* pending) {
  const uint64_t now_ns = base::NowNs();
  for (const auto& instance : roster_.instances()) {
    if (!IsAvailable(*instance)) continue;
    const BatchDecision decision = source_.Decide(IndexOf(*instance), now_ns);
    const uint64_t looks_again_at_ns = instance->thread.looks_again_at_ns(mutex_);
    const bool has_to_look_earlier =
        decision.look_again_at_ns &&
        (looks_again_at_ns == 0 || looks_again_at_ns > *decision.look_again_at_ns);
    if (decision.request_count > 0 || has_to_look_earlier) Notify(*instance, pending);
  }
}

void InstanceSet::WakeThoseInVain() {
  for (const auto& instance : roster_.instances()) {
    if (!IsBusy(*instance) && instance->claim.is_in_line() && HoldsInVain(*instance)) {
      Notify(*instance);
    }
  }
}

bool InstanceSet::HoldsInVain(const PooledInstance& instance) const {
  return instance.claim.is_engaged() &&
         (!source_.HasWaiting() || IsOver(instance) || Decide(instance).request_count == 0);
}

void InstanceSet::NoteChange() {
  if (IsIdle()) NotifyIdle();
  WakeForWork();
}

// -- Adding and removing instances. --

std::unique_ptr<PooledInstance> InstanceSet::Make(std::unique_ptr<core::Instance> instance,
                                                  bool is_limited) {
  // An instance that may have to wait for resources does so on its own thread.
  const InlineTraits traits = is_limited ? InlineTraits{}
                                         : InlineTraits{.runs = instance->runs_on_any_thread(),
                                                        .begins = instance->begins_on_any_thread()};
  auto made = std::make_unique<PooledInstance>(
      std::move(instance), policy_.NewRecord(traits), *this,
      [this](PooledInstance& executing) { InstanceWorker(*this, executing).Run(); });
  if (watchdog_ != nullptr) {
    made->watch = watchdog_->Add({.heartbeat = made->heartbeat,
                                  .kind = "instance",
                                  .name = made->instance->name(),
                                  .part = made->instance.get(),
                                  .owner = &model_});
  }
  made->execution.batch.reserve(
      static_cast<size_t>(std::clamp<int64_t>(model_.max_batch_size(), 1, kReservedBatch)));
  return made;
}

void InstanceSet::Admit(PooledInstances added) {
  for (const auto& instance : added) has_claims_ = has_claims_ || instance->claim.is_limited();
  roster_.Admit(mutex_, std::move(added));
}

std::vector<uint64_t> InstanceSet::Retire(const std::vector<const core::Instance*>& removed) {
  std::vector<uint64_t> ids = roster_.Retire(mutex_, removed);
  if (!ids.empty()) NoteRelease();
  return ids;
}

void InstanceSet::NoteRelease() {
  if (!roster_.has_leaving()) return;
  for (const auto& instance : roster_.instances()) {
    if (IsOver(*instance)) instance->thread.Wake(mutex_);
  }
  left_.NotifyAll();
}

void InstanceSet::NoteThreadEnded(const PooledInstance& instance) {
  if (instance.state.Under(mutex_).is_leaving) left_.NotifyAll();
}

void InstanceSet::WaitUntilGoneOrBound(const std::vector<uint64_t>& ids) {
  const auto is_gone_or_bound = [this](uint64_t id) NEREID_REQUIRES(mutex_) {
    return roster_.IsGoneOrBound(mutex_, id);
  };
  while (!is_ending_ && !std::ranges::all_of(ids, is_gone_or_bound)) left_.Wait(mutex_);
}

std::unique_ptr<PooledInstance> InstanceSet::WaitForRetired() {
  while (!is_ending_ && roster_.has_leaving()) {
    if (auto retired = roster_.TakeRetired(mutex_)) return retired;
    left_.Wait(mutex_);
  }
  return nullptr;
}

void InstanceSet::ForgetRetired(uint64_t id) {
  roster_.Forget(id);
  left_.NotifyAll();
}

// -- The end. --

void InstanceSet::NotifyIdle() {
  if (idle_waiters_ > 0) idle_.NotifyAll();
}

bool InstanceSet::WaitForIdle(base::TimePoint deadline) {
  ++idle_waiters_;
  const bool is_in_time = idle_.WaitUntil(mutex_, deadline);
  --idle_waiters_;
  return is_in_time;
}

bool InstanceSet::AreThreadsAsleep() const {
  return std::ranges::none_of(roster_.instances(),
                              [this](const auto& instance) NEREID_REQUIRES(mutex_) {
                                return instance->thread.is_on_its_way(mutex_);
                              });
}

bool InstanceSet::Stop(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  WakeForWork();
  while (!IsIdle()) {
    if (!WaitForIdle(deadline)) return IsIdle();
  }
  return true;
}

void InstanceSet::EndThreads() {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  is_ending_ = true;
  for (const auto& instance : roster_.instances()) instance->thread.Wake(mutex_);
  left_.NotifyAll();
  NotifyIdle();
}

void InstanceSet::JoinThreads() {
  std::vector<PooledInstance*> ending;
  {
    base::MutexLock lock(mutex_);
    for (const auto& instance : roster_.instances()) ending.push_back(instance.get());
  }
  for (PooledInstance* instance : ending) instance->thread.Join();
  // Threads that have left may still run destructors of a plug-in's thread-local objects.
  reaper_.WaitForLeft();
  // Reset before the lock is destroyed, which a grant takes.
  for (PooledInstance* instance : ending) instance->claim.Reset();
}

bool InstanceSet::WaitUntilAsleepForTest(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (!IsIdle() || !AreThreadsAsleep()) {
    if (!WaitForIdle(deadline)) return IsIdle() && AreThreadsAsleep();
  }
  return true;
}

bool InstanceSet::WaitUntilEndingForTest(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (!is_ending_ || !AreThreadsAsleep()) {
    if (!WaitForIdle(deadline)) return is_ending_ && AreThreadsAsleep();
  }
  return true;
}

}  // namespace nereid::schedule
