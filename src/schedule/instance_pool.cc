// SPDX-License-Identifier: Apache-2.0
// Everything that is decided happens under one short lock; executions happen outside it. An
// instance is either idle or busy; it becomes busy together with its batch, under the lock, by the
// thread that is about to run it, so no request is ever between two owners.
#include "schedule/instance_pool.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/thread_use.h"
#include "core/response.h"
#include "schedule/refuse.h"

namespace nereid::schedule {
namespace {

// Executions that are timed on the instance's own thread before it may run on a reactor.
constexpr uint64_t kMeasuredRuns = 32;
// Executions that are timed with care after one took longer than it may on a reactor. More than a
// few: a model that is slow from time to time shall be found out.
constexpr uint64_t kWatchedRuns = 256;
// A reactor runs a batch, or several, for so many times the budget before it turns to its sockets
// again; as many quick requests that are not batched might have come to it at once.
constexpr int kInlineBudgetsPerRound = 8;
// A reactor waits for what runs elsewhere for so many times the budget: it need not be quicker than
// a change of threads.
constexpr int kBudgetsToWait = 2;
// After two requests were there at the same time, so many have to come alone before a reactor waits
// for one: while it waits it reads no other.
constexpr uint32_t kCrowdedArrivals = 32;
// Batches up to this size never grow the memory kept for them.
constexpr int64_t kReservedBatch = 1024;

base::TimePoint ToTimePoint(uint64_t ns) {
  return base::TimePoint(base::nanoseconds(static_cast<int64_t>(ns)));
}

// How long an execution keeps its thread.
class Stopwatch {
 public:
  // With `is_exact`, what passes while another thread has the processor does not count: that is not
  // the execution's doing, unless it waits for something.
  Stopwatch(bool is_exact, uint64_t start_ns)
      : is_exact_(is_exact),
        use_(is_exact ? base::ThreadUse::Now() : base::ThreadUse()),
        start_ns_(start_ns) {}

  uint64_t PassedNs(uint64_t end_ns) const {
    uint64_t passed_ns = end_ns > start_ns_ ? end_ns - start_ns_ : 0;
    if (is_exact_) {
      const base::ThreadUse use = base::ThreadUse::Now();
      if (use.waits == use_.waits) passed_ns = std::min(passed_ns, use.cpu_ns - use_.cpu_ns);
    }
    return passed_ns;
  }

 private:
  const bool is_exact_;
  const base::ThreadUse use_;
  const uint64_t start_ns_;
};

}  // namespace

class InstancePool::Round final : public core::RoundTask {
 public:
  Round(InstancePool& pool, core::RoundExecutor& executor) : pool_(pool), executor_(executor) {}

  core::RoundExecutor& executor() { return executor_; }
  // Guarded by the pool's lock: whether it will run, or is about to be scheduled.
  bool is_announced = false;
  // On the executor's thread. `pin` keeps the model, and with it the pool, until the round ran.
  void Schedule(core::ModelHandle pin) {
    if (pin_) return;
    pin_ = std::move(pin);
    executor_.RunAfterRound(*this);
  }
  void RunRound() override {
    // Dropped last: this object may be gone with the model then.
    const core::ModelHandle pin = std::move(pin_);
    pool_.RunRound(*this);
  }

 private:
  InstancePool& pool_;
  core::RoundExecutor& executor_;
  core::ModelHandle pin_;  // set while scheduled; confined to the executor's thread
};

InstancePool::InstancePool(core::Model& model, WorkSource& source, InstancePoolOptions options)
    : model_(model), source_(source), options_(std::move(options)) {}

InstancePool::~InstancePool() { End(); }

base::Status InstancePool::Start(std::vector<std::unique_ptr<core::Instance>> instances,
                                 std::vector<RateLimiter::ClaimOptions> claims) {
  std::vector<InstanceChange::Added> added;
  for (size_t i = 0; i < instances.size(); ++i) {
    added.push_back(
        {.instance = std::move(instances[i]),
         .claim = i < claims.size() ? std::move(claims[i]) : RateLimiter::ClaimOptions()});
  }
  return Change({.added = std::move(added), .removed = {}});
}

base::Result<InstancePool::Slots> InstancePool::MakeSlots(
    std::vector<InstanceChange::Added> instances) {
  Slots slots;
  for (InstanceChange::Added& added : instances) {
    auto slot = std::make_unique<Slot>();
    slot->instance = std::move(added.instance);
    slot->watched_runs = kMeasuredRuns;
    slot->batch.reserve(
        static_cast<size_t>(std::clamp<int64_t>(model_.max_batch_size(), 1, kReservedBatch)));
    if (options_.rate_limiter != nullptr) {
      added.claim.on_grant = [this, raw = slot.get()] {
        base::MutexLock lock(mutex_);
        Notify(*raw);
      };
      NEREID_ASSIGN_OR_RETURN(slot->claim, options_.rate_limiter->Register(std::move(added.claim)));
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

base::Status InstancePool::StartSlots(const Slots& slots) {
  std::vector<std::future<base::Status>> starting;
  for (const auto& slot : slots) {
    if (slot->instance->runs_on_any_thread()) {
      if (options_.warm_up) NEREID_RETURN_IF_ERROR(options_.warm_up(*slot->instance));
      continue;
    }
    starting.push_back(StartThread(*slot));
    if (!options_.starts_in_parallel) NEREID_RETURN_IF_ERROR(starting.back().get());
  }
  if (!options_.starts_in_parallel) return base::OkStatus();
  // All are waited for: what has started is in use until then.
  base::Status first_failure;
  for (auto& started : starting) {
    base::Status status = started.get();
    if (first_failure.ok()) first_failure = std::move(status);
  }
  return first_failure;
}

std::future<base::Status> InstancePool::StartThread(Slot& slot) {
  // Shared because the body of a thread can be copied.
  auto started = std::make_shared<std::promise<base::Status>>();
  std::future<base::Status> result = started->get_future();
  slot.has_thread = true;
  slot.thread = base::Thread(slot.instance->name(), [this, &slot, started = std::move(started)] {
    base::Status status = slot.instance->InitializeOnThread();
    const bool is_initialized = status.ok();
    if (status.ok() && options_.warm_up) status = options_.warm_up(*slot.instance);
    const bool is_ready = status.ok();
    if (is_initialized && !is_ready) slot.instance->FinalizeOnThread();
    started->set_value(std::move(status));
    if (!is_ready) return;
    if (WaitForAdmission(slot)) return ThreadMain(slot);
    slot.instance->FinalizeOnThread();
  });
  return result;
}

bool InstancePool::WaitForAdmission(Slot& slot) {
  base::MutexLock lock(mutex_);
  while (!slot.is_admitted && !slot.is_dropped) slot.wake.Wait(mutex_);
  return slot.is_admitted;
}

void InstancePool::Drop(Slots slots) {
  {
    base::MutexLock lock(mutex_);
    for (const auto& slot : slots) {
      slot->is_dropped = true;
      slot->wake.NotifyAll();
    }
  }
  for (const auto& slot : slots) {
    slot->thread.Join();
    slot->claim.reset();
  }
}

void InstancePool::AdmitLocked(Slots slots) {
  const uint64_t now_ns = base::NowNs();
  std::set<size_t> taken;
  for (const auto& slot : slots_) taken.insert(slot->index);
  size_t index = 0;
  for (auto& slot : slots) {
    while (taken.contains(index)) ++index;
    slot->index = index++;
    slot->id = ++last_id_;
    source_.AddInstance(slot->index, now_ns);
    slot->is_admitted = true;
    slot->wake.NotifyAll();
    slots_.push_back(std::move(slot));
  }
}

base::Status InstancePool::Change(InstanceChange change) {
  NEREID_ASSIGN_OR_RETURN(Slots added, MakeSlots(std::move(change.added)));
  if (base::Status status = StartSlots(added); !status.ok()) {
    Drop(std::move(added));
    return status;
  }
  std::vector<uint64_t> going;
  base::MutexLock lock(mutex_);
  AdmitLocked(std::move(added));
  for (const auto& slot : slots_) {
    if (std::ranges::find(change.removed, slot->instance.get()) == change.removed.end()) continue;
    slot->is_leaving = true;
    source_.RetireInstance(slot->index);
    leaving_[slot->id] = slot->index;
    going.push_back(slot->id);
  }
  WakeForWork();
  if (going.empty()) return base::OkStatus();
  NoteRelease();
  if (!std::exchange(is_retiring_, true)) {
    retirer_.Join();  // one that had nothing left to do
    retirer_ = base::Thread("retire", [this] { RetireLeaving(); });
  }
  // What nothing is bound to goes now; the rest when its time comes.
  const auto is_gone_or_bound = [this](uint64_t id) NEREID_REQUIRES(mutex_) {
    const auto found = leaving_.find(id);
    return found == leaving_.end() || !source_.IsReleased(found->second);
  };
  while (!is_ending_ && !std::ranges::all_of(going, is_gone_or_bound)) left_.Wait(mutex_);
  return base::OkStatus();
}

void InstancePool::RetireLeaving() {
  mutex_.Lock();
  while (!is_ending_ && !leaving_.empty()) {
    const auto next =
        std::ranges::find_if(slots_, [this](const auto& slot) NEREID_REQUIRES(mutex_) {
          return !slot->is_busy && !slot->has_thread && IsOver(*slot);
        });
    if (next == slots_.end()) {
      left_.Wait(mutex_);
      continue;
    }
    std::unique_ptr<Slot> slot = std::move(*next);
    slots_.erase(next);
    mutex_.Unlock();
    slot->thread.Join();
    // Threads that have left may still run destructors of what a plug-in kept for them.
    if (options_.reaper != nullptr) options_.reaper->WaitForLeft();
    slot->claim.reset();
    const uint64_t gone = slot->id;
    slot.reset();
    mutex_.Lock();
    leaving_.erase(gone);
    left_.NotifyAll();
  }
  is_retiring_ = false;
  mutex_.Unlock();
}

void InstancePool::NoteRelease() {
  if (leaving_.empty()) return;
  for (const auto& slot : slots_) {
    if (IsOver(*slot)) slot->wake.NotifyAll();
  }
  left_.NotifyAll();
}

bool InstancePool::IsQuick(const Slot& slot, int64_t limit_ns) const {
  return limit_ns > 0 && slot.claim == nullptr && slot.execution_count >= kMeasuredRuns &&
         slot.average_ns <= static_cast<uint64_t>(limit_ns);
}

bool InstancePool::MayRunInline(const Slot& slot) const {
  return slot.instance->runs_on_any_thread() && IsQuick(slot, options_.inline_budget.count());
}

bool InstancePool::MayBegin(const Slot& slot, uint64_t now_ns) {
  // With one core, who waits keeps the execution from it.
  static const bool has_cores = base::AvailableCpus() > 1;
  return has_cores && slot.instance->begins_on_any_thread() &&
         IsQuick(slot, (options_.inline_budget * kBudgetsToWait).count()) &&
         source_.Decide(slot.index, now_ns).request_count == 1;
}

bool InstancePool::IsWatched(const Slot& slot) const {
  return options_.inline_budget.count() > 0 &&
         (slot.instance->runs_on_any_thread() || slot.instance->begins_on_any_thread()) &&
         (slot.watched_runs > 0 ||
          slot.average_ns > static_cast<uint64_t>(options_.inline_budget.count()));
}

InstancePool::Slot* InstancePool::IdleSlot() {
  for (auto& slot : slots_) {
    if (!slot->is_busy && !IsOver(*slot)) return slot.get();
  }
  return nullptr;
}

InstancePool::Round& InstancePool::RoundOn(core::RoundExecutor& executor) {
  for (auto& round : rounds_) {
    if (&round->executor() == &executor) return *round;
  }
  return *rounds_.emplace_back(std::make_unique<Round>(*this, executor));
}

void InstancePool::Announce(Arrival& arrival, uint64_t now_ns) {
  if (arrival.executor_ != nullptr && options_.collects_rounds) {
    // What else arrives in this round may join the batch; nobody is woken before it is over.
    return AnnounceRound(arrival);
  }
  if (arrival.executor_ != nullptr) {
    Slot* const slot = IdleSlot();
    if (slot != nullptr && MayRunInline(*slot) && TakeBatch(*slot, now_ns)) {
      arrival.inline_slot_ = slot;
      // What had waited before this arrival was perhaps that instance's until now.
      if (source_.HasWaiting()) [[unlikely]]
        WakeForWork();
      return;
    }
    if (slot == nullptr || arrival.executor_->HasMoreEvents()) {
      crowded_ = kCrowdedArrivals;
    } else if (crowded_ > 0) {
      --crowded_;
    } else if (MayBegin(*slot, now_ns) && TakeBatch(*slot, now_ns)) {
      arrival.inline_slot_ = slot;
      if (source_.HasWaiting()) [[unlikely]]
        WakeForWork();
      return;
    }
    // A quick model whose thread is behind comes back to the reactor, which would otherwise keep
    // that thread behind for as long as requests come.
    if (slot == nullptr && !slots_.empty() && MayRunInline(*slots_.front())) {
      return AnnounceRound(arrival);
    }
  }
  WakeForWork();
}

void InstancePool::AnnounceRound(Arrival& arrival) {
  arrival.round_ = &RoundOn(*arrival.executor_);
  if (!std::exchange(arrival.round_->is_announced, true)) ++scheduled_rounds_;
}

void InstancePool::Finish(Arrival arrival) {
  if (arrival.round_ != nullptr) arrival.round_->Schedule(std::move(arrival.pin_));
  if (arrival.inline_slot_ == nullptr) return;
  Slot& slot = *arrival.inline_slot_;
  if (!slot.instance->runs_on_any_thread()) return Begin(slot);
  const uint64_t end_ns = Execute(slot);
  base::MutexLock lock(mutex_);
  Account(slot);
  // What other reactors brought meanwhile, and left because this one was at it.
  RunWaiting(InlineRoundNs() - static_cast<int64_t>(slot.duration_ns), end_ns);
}

bool InstancePool::TakeBatch(Slot& slot, uint64_t now_ns) {
  if (slot.is_leaving && IsOver(slot)) return false;
  const BatchDecision decision = source_.Decide(slot.index, now_ns);
  if (decision.request_count == 0) return false;
  if (slot.claim != nullptr && !slot.claim->TryTake()) return false;
  source_.Take(slot.index, decision, slot.batch);
  int64_t taken = 0;
  for (const core::RequestPtr& request : slot.batch) {
    request->times.batch_start_ns = now_ns;
    if (!request->is_padding) ++taken;
  }
  model_.statistics().AddPending(-taken);
  model_.statistics().RecordBatchClosed(decision.reason);
  slot.is_busy = true;
  slot.taken_ns = now_ns;
  ++busy_count_;
  return true;
}

void InstancePool::DropCancelled(Slot& slot) {
  if (!options_.drops_cancelled) return;
  // Clients that left meanwhile cost no computation.
  std::erase_if(slot.batch, [](core::RequestPtr& request) {
    if (!request->is_cancelled()) return false;
    Refuse(std::move(request), core::FailureReason::kCancelled, CancelledError());
    return true;
  });
}

void InstancePool::Begin(Slot& slot) {
  DropCancelled(slot);
  slot.executed_requests = slot.batch.size();
  const bool is_over = slot.batch.empty() ||
                       slot.instance->Begin(slot.batch, options_.inline_budget * kBudgetsToWait);
  slot.batch.clear();
  slot.duration_ns = base::NowNs() - slot.taken_ns;
  base::MutexLock lock(mutex_);
  if (!is_over) {
    slot.is_begun = true;
    slot.wake.NotifyOne();
    return;
  }
  Account(slot);
  WakeForWork();
}

uint64_t InstancePool::Execute(Slot& slot) {
  DropCancelled(slot);
  slot.executed_requests = slot.batch.size();
  const Stopwatch stopwatch(IsWatched(slot), slot.taken_ns);
  if (!slot.batch.empty()) slot.instance->Execute(slot.batch);
  const uint64_t end_ns = base::NowNs();
  slot.duration_ns = stopwatch.PassedNs(end_ns);
  slot.batch.clear();
  if (slot.claim != nullptr) {
    mutex_.Lock();
    const bool wants_more = source_.HasWaiting();
    mutex_.Unlock();
    slot.claim->Give(wants_more);
  }
  return end_ns;
}

void InstancePool::Account(Slot& slot) {
  // A batch may take as long as its requests might have taken one by one.
  uint64_t duration_ns =
      slot.duration_ns / std::clamp<size_t>(slot.executed_requests, 1, kInlineBudgetsPerRound);
  const auto budget_ns = static_cast<uint64_t>(options_.inline_budget.count());
  const bool was_watched = IsWatched(slot);
  if (slot.watched_runs > 0) --slot.watched_runs;
  if (duration_ns > budget_ns && slot.average_ns <= budget_ns) {
    // Perhaps something else had the processor, which shall not cost a quick model its place on the
    // reactor. Of the next ones that will be known.
    if (!was_watched) duration_ns = std::min(duration_ns, 2 * budget_ns);
    slot.watched_runs = kWatchedRuns;
  }
  ++slot.execution_count;
  slot.average_ns = slot.execution_count == 1
                        ? duration_ns
                        : slot.average_ns - slot.average_ns / 8 + duration_ns / 8;
  slot.is_busy = false;
  --busy_count_;
  source_.OnExecuted(slot.index);
  // Its thread waits until nothing is executed any more.
  if ((is_ending_ || slot.is_leaving) && slot.is_waiting) slot.wake.NotifyOne();
  if (slot.is_leaving) left_.NotifyAll();
  if (IsIdle()) NotifyIdle();
}

int64_t InstancePool::InlineRoundNs() const {
  return (options_.inline_budget * kInlineBudgetsPerRound).count();
}

void InstancePool::RunRound(Round& round) {
  base::MutexLock lock(mutex_);
  round.is_announced = false;
  --scheduled_rounds_;
  if (!source_.HasWaiting()) return;
  RunWaiting(InlineRoundNs(), base::NowNs());
}

void InstancePool::RunWaiting(int64_t left_ns, uint64_t now_ns) {
  // Where every instance is busy, whoever finishes first takes more.
  Slot* slot = IdleSlot();
  while (slot != nullptr && source_.HasWaiting()) {
    if (MayBegin(*slot, now_ns) && TakeBatch(*slot, now_ns)) {
      WakeForWork();
      mutex_.Unlock();
      Begin(*slot);
      mutex_.Lock();
      return;
    }
    if (left_ns < 0 || !MayRunInline(*slot) || !TakeBatch(*slot, now_ns)) {
      WakeForWork();
      break;
    }
    // More than this batch waits: another instance need not wait for this thread.
    if (source_.HasWaiting()) WakeForWork();
    mutex_.Unlock();
    now_ns = Execute(*slot);
    left_ns -= static_cast<int64_t>(slot->duration_ns);
    mutex_.Lock();
    Account(*slot);
    slot = IdleSlot();
  }
}

void InstancePool::NotifyIdle() {
  if (idle_waiters_ > 0) idle_.NotifyAll();
}

bool InstancePool::WaitForIdle(base::TimePoint deadline) {
  ++idle_waiters_;
  const bool is_in_time = idle_.WaitUntil(mutex_, deadline);
  --idle_waiters_;
  return is_in_time;
}

void InstancePool::Notify(Slot& slot) {
  if (slot.is_busy || is_ending_ || IsOver(slot)) return;
  if (!slot.has_thread) {
    slot.has_thread = true;
    slot.thread.Join();  // one that had nothing to do, and is about to be gone
    slot.thread = base::Thread(slot.instance->name(), [this, &slot] { ThreadMain(slot); });
    return;
  }
  if (slot.is_waiting && !slot.is_notified) {
    slot.is_notified = true;
    slot.wake.NotifyOne();
  }
}

void InstancePool::WakeForWork() {
  if (options_.rate_limiter != nullptr) WakeThoseInVain();
  if (is_ending_ || !source_.HasWaiting()) return;
  if (source_.is_instance_bound()) return WakeEachForWork();
  // One decision for all: one thread that is on its way, or sleeps until the right moment, is
  // enough.
  std::optional<BatchDecision> decision;
  Slot* candidate = nullptr;
  for (auto& slot : slots_) {
    if (slot->is_busy || IsOver(*slot) || IsInLine(*slot)) continue;
    if (IsLeftToReactor(*slot)) return;
    if (slot->has_thread && (!slot->is_waiting || slot->is_notified)) return;
    if (!decision) decision = source_.Decide(slot->index, base::NowNs());
    if (decision->request_count == 0 && !decision->look_again_at_ns) return;
    if (decision->request_count == 0 && slot->wait_until_ns != 0 &&
        slot->wait_until_ns <= *decision->look_again_at_ns) {
      return;
    }
    if (candidate == nullptr || slot->wait_until_ns != 0) candidate = slot.get();
  }
  if (candidate != nullptr) Notify(*candidate);
}

void InstancePool::WakeEachForWork() {
  const uint64_t now_ns = base::NowNs();
  for (auto& slot : slots_) {
    if (slot->is_busy || IsOver(*slot) || IsInLine(*slot)) continue;
    const BatchDecision decision = source_.Decide(slot->index, now_ns);
    if (decision.request_count > 0) {
      Notify(*slot);
    } else if (decision.look_again_at_ns &&
               (slot->wait_until_ns == 0 || slot->wait_until_ns > *decision.look_again_at_ns)) {
      Notify(*slot);
    }
  }
}

void InstancePool::WakeThoseInVain() {
  for (auto& slot : slots_) {
    if (!slot->is_busy && IsInLine(*slot) && HoldsInVain(*slot)) Notify(*slot);
  }
}

bool InstancePool::WaitForWork(Slot& slot) {
  uint64_t until_ns = 0;
  if (!slot.is_busy && source_.HasWaiting()) {
    const BatchDecision decision = source_.Decide(slot.index, base::NowNs());
    // Its time has come since TakeBatch looked, and nobody would say so again. In line for
    // resources, the grant will.
    if (decision.request_count > 0 && !IsInLine(slot) && !is_ending_ && !IsLeftToReactor(slot)) {
      return true;
    }
    until_ns = decision.look_again_at_ns.value_or(0);
  }
  const bool may_end = until_ns == 0 && !slot.is_busy && slot.claim == nullptr &&
                       slot.instance->runs_on_any_thread();
  slot.is_waiting = true;
  slot.wait_until_ns = until_ns;
  NotifyIdle();
  bool is_over = false;
  if (may_end) {
    const base::TimePoint end = ToTimePoint(base::NowNs()) + options_.idle_thread_lifetime;
    is_over =
        !slot.wake.WaitUntil(mutex_, end) && !slot.is_notified && !slot.is_busy && !is_ending_;
  } else if (until_ns == 0) {
    slot.wake.Wait(mutex_);
  } else {
    slot.wake.WaitUntil(mutex_, ToTimePoint(until_ns));
  }
  slot.is_waiting = false;
  slot.is_notified = false;
  slot.wait_until_ns = 0;
  return !is_over;
}

bool InstancePool::HoldsInVain(const Slot& slot) {
  return slot.claim != nullptr && !slot.claim->is_idle() &&
         (!source_.HasWaiting() || source_.Decide(slot.index, base::NowNs()).request_count == 0);
}

void InstancePool::ThreadMain(Slot& slot) {
  mutex_.Lock();
  while (true) {
    if (std::exchange(slot.is_begun, false)) {
      mutex_.Unlock();
      slot.instance->End();
      slot.duration_ns = base::NowNs() - slot.taken_ns;
      mutex_.Lock();
      Account(slot);
      continue;
    }
    if (!slot.is_busy && !is_ending_ && source_.HasWaiting() && !IsLeftToReactor(slot) &&
        TakeBatch(slot, base::NowNs())) {
      // More than this batch waits: another instance may take it meanwhile.
      WakeForWork();
      mutex_.Unlock();
      Execute(slot);
      mutex_.Lock();
      Account(slot);
      continue;
    }
    if ((is_ending_ || IsOver(slot)) && !slot.is_busy) break;
    // In line for what others hold; another instance may need something else, or nothing.
    if (!slot.is_busy && IsInLine(slot)) WakeForWork();
    if (!slot.is_busy && HoldsInVain(slot)) {
      mutex_.Unlock();
      slot.claim->Give();
      mutex_.Lock();
      continue;
    }
    if (!WaitForWork(slot)) {
      // Whoever needs it makes another.
      slot.has_thread = false;
      if (slot.is_leaving) left_.NotifyAll();
      base::ThreadReaper* const reaper = options_.reaper;
      base::Thread self;
      if (reaper != nullptr) self = std::move(slot.thread);
      mutex_.Unlock();
      // The pool may be gone now.
      if (reaper != nullptr) reaper->Leave(std::move(self));
      return;
    }
  }
  slot.has_thread = false;
  if (slot.is_leaving) left_.NotifyAll();
  mutex_.Unlock();
  slot.instance->FinalizeOnThread();
}

void InstancePool::NoteChange() {
  if (IsIdle()) NotifyIdle();
  WakeForWork();
}

bool InstancePool::IsAsleep() const {
  return IsIdle() && std::ranges::all_of(slots_, [](const auto& slot) {
           return !slot->has_thread || (slot->is_waiting && !slot->is_notified);
         });
}

bool InstancePool::WaitUntilAsleepForTest(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (!IsAsleep()) {
    if (!WaitForIdle(deadline)) return IsAsleep();
  }
  return true;
}

bool InstancePool::Stop(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  WakeForWork();
  while (!IsIdle()) {
    if (!WaitForIdle(deadline)) return IsIdle();
  }
  return true;
}

void InstancePool::End() {
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
    is_ending_ = true;
    for (auto& slot : slots_) slot->wake.NotifyAll();
    left_.NotifyAll();
  }
  retirer_.Join();
  std::vector<Slot*> ending;
  {
    base::MutexLock lock(mutex_);
    for (const auto& slot : slots_) ending.push_back(slot.get());
  }
  for (Slot* slot : ending) slot->thread.Join();
  // Threads that have left may still run destructors of what a plug-in kept for them.
  if (options_.reaper != nullptr) options_.reaper->WaitForLeft();
  // Before the lock goes, which a grant takes.
  for (Slot* slot : ending) slot->claim.reset();
}

}  // namespace nereid::schedule
