// SPDX-License-Identifier: Apache-2.0
// Everything the scheduler decides happens under one short lock; executions happen outside it. An
// instance is either idle or busy; it becomes busy together with its batch, under the lock, by the
// thread that is about to run it, so no request is ever between two owners.
#include "schedule/batch_scheduler.h"

#include <future>

#include "core/response.h"

namespace nereid::schedule {
namespace {

// Executions that are timed on the instance's own thread before it may run on a reactor.
constexpr uint64_t kMeasuredRuns = 32;
// Batches that a reactor runs in one go before it turns to its sockets again.
constexpr int kInlineBatchesPerRound = 4;

base::Status StoppingError() {
  return base::UnavailableError(
      "Server is stopping, scheduler for model has stopped accepting new inference requests");
}

void Reject(core::RequestPtr request, core::FailureReason reason, base::Status error) {
  request->model->statistics().RecordFailure(reason, request->times.request_start_ns,
                                             base::NowNs());
  core::RespondError(std::move(request), std::move(error));
}

base::TimePoint ToTimePoint(uint64_t ns) {
  return base::TimePoint(base::nanoseconds(static_cast<int64_t>(ns)));
}

}  // namespace

class BatchScheduler::Round final : public core::RoundTask {
 public:
  Round(BatchScheduler& scheduler, core::RoundExecutor& executor)
      : scheduler_(scheduler), executor_(executor) {}

  core::RoundExecutor& executor() { return executor_; }
  // On the executor's thread. `pin` keeps the model, and with it the scheduler, until the round ran.
  void Schedule(core::ModelHandle pin) {
    if (pin_) return;
    pin_ = std::move(pin);
    executor_.RunAfterRound(*this);
  }
  void RunRound() override {
    // Dropped last: this object may be gone with the model then.
    const core::ModelHandle pin = std::move(pin_);
    scheduler_.RunRound();
  }

 private:
  BatchScheduler& scheduler_;
  core::RoundExecutor& executor_;
  core::ModelHandle pin_;  // set while scheduled; confined to the executor's thread
};

BatchScheduler::BatchScheduler(core::Model& model, BatchSchedulerOptions options)
    : model_(model),
      options_(std::move(options)),
      may_inline_(options_.inline_budget.count() > 0 &&
                  options_.policy.max_queue_delay.count() == 0),
      queue_(model, options_.policy) {}

base::Result<std::unique_ptr<BatchScheduler>> BatchScheduler::Create(
    core::Model& model, BatchSchedulerOptions options,
    std::vector<std::unique_ptr<core::Instance>> instances) {
  std::unique_ptr<BatchScheduler> scheduler(new BatchScheduler(model, std::move(options)));
  for (auto& instance : instances) {
    auto slot = std::make_unique<Slot>();
    slot->instance = std::move(instance);
    slot->batch.reserve(scheduler->options_.policy.max_batch_size < 1024
                            ? scheduler->options_.policy.max_batch_size
                            : 1024);
    scheduler->slots_.push_back(std::move(slot));
  }
  for (auto& slot : scheduler->slots_) {
    if (slot->instance->runs_on_any_thread()) continue;
    std::promise<base::Status> initialised;
    slot->has_thread = true;
    slot->thread = base::Thread(slot->instance->name(),
                                [&initialised, raw = scheduler.get(), slot = slot.get()] {
                                  base::Status status = slot->instance->InitializeOnThread();
                                  const bool ok = status.ok();
                                  initialised.set_value(std::move(status));
                                  if (ok) raw->ThreadMain(*slot);
                                });
    NEREID_RETURN_IF_ERROR(initialised.get_future().get());
  }
  return scheduler;
}

BatchScheduler::~BatchScheduler() {
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
    is_ending_ = true;
    for (auto& slot : slots_) slot->wake.NotifyAll();
  }
  for (auto& slot : slots_) slot->thread.Join();
  base::MutexLock lock(mutex_);
  while (core::RequestPtr request = queue_.PopFront()) {
    model_.statistics().AddPending(-1);
    Reject(std::move(request), core::FailureReason::kOther, StoppingError());
  }
}

bool BatchScheduler::MayRunInline(const Slot& slot) const {
  return may_inline_ && slot.instance->runs_on_any_thread() &&
         slot.execution_count >= kMeasuredRuns &&
         slot.average_ns <= static_cast<uint64_t>(options_.inline_budget.count());
}

BatchScheduler::Slot* BatchScheduler::IdleSlot() {
  for (auto& slot : slots_) {
    if (!slot->is_busy) return slot.get();
  }
  return nullptr;
}

BatchScheduler::Round& BatchScheduler::RoundOn(core::RoundExecutor& executor) {
  for (auto& round : rounds_) {
    if (&round->executor() == &executor) return *round;
  }
  return *rounds_.emplace_back(std::make_unique<Round>(*this, executor));
}

void BatchScheduler::Enqueue(core::RequestPtr request) {
  request->times.queue_start_ns = base::NowNs();
  // Once queued, the request may be answered by another thread and its own pin be gone.
  core::ModelHandle pin = request->model.Duplicate();
  core::RoundExecutor* const executor = request->round;
  Round* round = nullptr;
  Slot* inline_slot = nullptr;
  {
    base::MutexLock lock(mutex_);
    if (!is_stopping_) {
      const bool was_empty = queue_.empty();
      queue_.Push(std::move(request));
      model_.statistics().AddPending(1);
      if (executor != nullptr && options_.policy.is_dynamic) {
        // What else arrives in this round may join the batch; nobody is woken before it is over.
        round = &RoundOn(*executor);
      } else if (executor != nullptr && was_empty) {
        inline_slot = IdleSlot();
        if (inline_slot != nullptr && !MayRunInline(*inline_slot)) inline_slot = nullptr;
        if (inline_slot != nullptr) TakeBatch(*inline_slot);
      }
      if (round == nullptr && inline_slot == nullptr) WakeForWork();
    }
  }
  if (request != nullptr) {
    return Reject(std::move(request), core::FailureReason::kOther, StoppingError());
  }
  if (round != nullptr) round->Schedule(std::move(pin));
  if (inline_slot == nullptr) return;
  Execute(*inline_slot);
  base::MutexLock lock(mutex_);
  WakeForWork();
}

void BatchScheduler::OnCancelled(core::Request& request) {
  core::RequestPtr removed;
  {
    base::MutexLock lock(mutex_);
    removed = queue_.Remove(request);
    if (removed != nullptr) {
      model_.statistics().AddPending(-1);
      if (queue_.empty()) idle_.NotifyAll();
    }
  }
  if (removed != nullptr) {
    Reject(std::move(removed), core::FailureReason::kCancelled,
           base::CancelledError("Request cancelled"));
  }
}

bool BatchScheduler::TakeBatch(Slot& slot) {
  const uint64_t now_ns = base::NowNs();
  const BatchDecision decision = queue_.Decide(now_ns);
  if (decision.request_count == 0) return false;
  for (size_t i = 0; i < decision.request_count; ++i) {
    slot.batch.push_back(queue_.PopFront());
    slot.batch.back()->times.batch_start_ns = now_ns;
  }
  model_.statistics().AddPending(-static_cast<int64_t>(decision.request_count));
  slot.is_busy = true;
  ++busy_count_;
  return true;
}

void BatchScheduler::Execute(Slot& slot) {
  // Clients that left meanwhile cost no computation.
  std::erase_if(slot.batch, [](core::RequestPtr& request) {
    if (!request->is_cancelled()) return false;
    Reject(std::move(request), core::FailureReason::kCancelled,
           base::CancelledError("Request cancelled"));
    return true;
  });
  const uint64_t start_ns = base::NowNs();
  if (!slot.batch.empty()) slot.instance->Execute(slot.batch);
  const uint64_t duration_ns = base::NowNs() - start_ns;
  slot.batch.clear();
  base::MutexLock lock(mutex_);
  ++slot.execution_count;
  slot.average_ns = slot.execution_count == 1 ? duration_ns
                                              : slot.average_ns - slot.average_ns / 8 + duration_ns / 8;
  slot.is_busy = false;
  --busy_count_;
  if (busy_count_ == 0 && queue_.empty()) idle_.NotifyAll();  // free while nobody waits for it
}

void BatchScheduler::RunRound() {
  for (int i = 0; i < kInlineBatchesPerRound; ++i) {
    Slot* slot = nullptr;
    {
      base::MutexLock lock(mutex_);
      if (queue_.empty()) return;
      slot = IdleSlot();
      if (slot == nullptr) return;  // whoever finishes first takes more
      if (!MayRunInline(*slot) || !TakeBatch(*slot)) return WakeForWork();
    }
    Execute(*slot);
  }
  base::MutexLock lock(mutex_);
  WakeForWork();
}

void BatchScheduler::Notify(Slot& slot) {
  if (!slot.has_thread) {
    slot.has_thread = true;
    slot.thread = base::Thread(slot.instance->name(), [this, &slot] { ThreadMain(slot); });
    return;
  }
  if (slot.is_waiting && !slot.is_notified) {
    slot.is_notified = true;
    slot.wake.NotifyOne();
  }
}

void BatchScheduler::WakeForWork() {
  if (queue_.empty() || is_ending_) return;
  const BatchDecision decision = queue_.Decide(base::NowNs());
  Slot* candidate = nullptr;
  for (auto& slot : slots_) {
    if (slot->is_busy) continue;
    // A thread that is on its way already, or sleeps until the right moment, is enough.
    if (slot->has_thread && (!slot->is_waiting || slot->is_notified)) return;
    if (decision.request_count == 0 && slot->wait_until_ns != 0 &&
        slot->wait_until_ns <= *decision.look_again_at_ns) {
      return;
    }
    if (candidate == nullptr || slot->wait_until_ns != 0) candidate = slot.get();
  }
  if (candidate != nullptr) Notify(*candidate);
}

void BatchScheduler::WaitForWork(Slot& slot) {
  uint64_t until_ns = 0;
  if (!queue_.empty() && !slot.is_busy) {
    until_ns = queue_.Decide(base::NowNs()).look_again_at_ns.value_or(0);
  }
  slot.is_waiting = true;
  slot.wait_until_ns = until_ns;
  if (until_ns == 0) {
    slot.wake.Wait(mutex_);
  } else {
    slot.wake.WaitUntil(mutex_, ToTimePoint(until_ns));
  }
  slot.is_waiting = false;
  slot.is_notified = false;
  slot.wait_until_ns = 0;
}

void BatchScheduler::ThreadMain(Slot& slot) {
  mutex_.Lock();
  while (true) {
    if (!slot.is_busy && !queue_.empty() && TakeBatch(slot)) {
      // More than this batch waits: another instance may take it meanwhile.
      WakeForWork();
      mutex_.Unlock();
      Execute(slot);
      mutex_.Lock();
      continue;
    }
    if (is_ending_ && !slot.is_busy) break;
    WaitForWork(slot);
  }
  mutex_.Unlock();
  slot.instance->FinalizeOnThread();
}

bool BatchScheduler::WaitUntilIdle(base::TimePoint deadline) {
  while (busy_count_ > 0 || !queue_.empty()) {
    if (!idle_.WaitUntil(mutex_, deadline)) return busy_count_ == 0 && queue_.empty();
  }
  return true;
}

bool BatchScheduler::WaitUntilIdleForTest(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  return WaitUntilIdle(deadline);
}

bool BatchScheduler::Stop(base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  is_stopping_ = true;
  WakeForWork();
  return WaitUntilIdle(deadline);
}

}  // namespace nereid::schedule
