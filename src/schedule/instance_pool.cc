// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_pool.h"

#include <utility>

namespace nereid::schedule {
namespace {

// A reactor that waits for an instance looks so often before it reads the clock.
constexpr int kLooksPerReading = 16;
// More reactors that wait at a time would take the lock's memory from each other, and from the one
// that executes.
constexpr int kMaxWaitingReactors = 3;

// Counts the calling thread for as long as it exists.
class CountedIn {
 public:
  // Relaxed: a number that says nothing of other data.
  explicit CountedIn(std::atomic<int>& count)
      : count_(count), others_(count.fetch_add(1, std::memory_order_relaxed)) {}
  ~CountedIn() { count_.fetch_sub(1, std::memory_order_relaxed); }
  CountedIn(const CountedIn&) = delete;
  CountedIn& operator=(const CountedIn&) = delete;

  int others() const { return others_; }

 private:
  std::atomic<int>& count_;
  const int others_;
};

}  // namespace

class InstancePool::Round final : public core::RoundTask {
 public:
  Round(InstancePool& pool, core::RoundExecutor& executor) : pool_(pool), executor_(executor) {}

  core::RoundExecutor& executor() { return executor_; }
  // Guarded by the pool's lock: whether it will run, or is about to be scheduled.
  base::Guarded<bool> is_announced{false};
  // Called on the executor's thread. `pin` keeps the model, and with it the pool, until the round
  // has run.
  void Schedule(core::ModelHandle pin) {
    if (pin_) return;
    pin_ = std::move(pin);
    executor_.RunAfterRound(*this);
  }
  void RunRound() override {
    // Dropped last, because it may destroy the model and this object.
    const core::ModelHandle pin = std::move(pin_);
    pool_.RunRound(*this);
  }

 private:
  InstancePool& pool_;
  core::RoundExecutor& executor_;
  core::ModelHandle pin_;  // set while scheduled; confined to the executor's thread
};

InstancePool::InstancePool(core::Model& model, WorkSource& source, SchedulerContext context,
                           InstancePoolOptions options)
    : set_(model, source, context, std::move(options)), changes_(set_, context.rate_limiter) {}

InstancePool::~InstancePool() { End(); }

InstancePool::Round& InstancePool::RoundOn(core::RoundExecutor& executor) {
  for (auto& round : rounds_) {
    if (&round->executor() == &executor) return *round;
  }
  return *rounds_.emplace_back(std::make_unique<Round>(*this, executor));
}

bool InstancePool::TryLockWithIdle() {
  const CountedIn counted(waiting_reactors_);
  if (counted.others() >= kMaxWaitingReactors) return false;
  const uint64_t end_ns = base::NowNs() + set_.policy().arrival_patience().count();
  do {
    for (int i = 0; i < kLooksPerReading; ++i) {
      if (!set_.is_briefly_full() && set_.mutex().TryLock()) {
        if (!set_.is_briefly_full()) return true;
        set_.mutex().Unlock();
      }
      base::Pause();
    }
  } while (base::NowNs() < end_ns);
  // Others need not wait for the same execution.
  set_.GiveUpWaiting();
  return false;
}

void InstancePool::LockAmongReactors(const Arrival& arrival) {
  if (arrival.executor_ == nullptr) return set_.mutex().Lock();
  if (set_.is_briefly_full() && TryLockWithIdle()) [[unlikely]]
    return set_.NoteMeeting();
  set_.mutex().LockSoon();
}

void InstancePool::Announce(Arrival& arrival, uint64_t now_ns) {
  if (arrival.executor_ == nullptr) return set_.WakeForWork(&arrival.wake_);
  // Other requests of this round may join the batch, so no thread is woken before it is over.
  if (set_.options().collects_rounds) return AnnounceRound(arrival);
  PooledInstance* const idle = set_.FindIdle();
  const InlineChoice choice = idle != nullptr ? Choose(*idle) : InlineChoice::kLeaveToThread;
  if (choice == InlineChoice::kRun && TakeInline(arrival, *idle, now_ns, SIZE_MAX)) return;
  const bool may_wait =
      arrivals_.Note(/*is_alone=*/idle != nullptr && !arrival.executor_->HasMoreEvents());
  if (choice == InlineChoice::kBegin && may_wait && TakeInline(arrival, *idle, now_ns, 1)) return;
  // A fast model whose thread lags returns to the reactor, which would otherwise keep that thread
  // lagging for as long as requests arrive.
  if (idle == nullptr && set_.RunsInline()) {
    set_.NoteMeeting();
    return AnnounceRound(arrival);
  }
  set_.WakeForWork(&arrival.wake_);
}

bool InstancePool::TakeInline(Arrival& arrival, PooledInstance& instance, uint64_t now_ns,
                              size_t max_requests) {
  if (!set_.TakeBatch(instance, now_ns, max_requests)) return false;
  arrival.inline_instance_ = &instance;
  if (set_.tells_reactors()) [[unlikely]] {
    // A request that waited before this arrival may be another reactor's.
    const std::vector<core::RequestPtr>& batch = instance.execution.batch;
    instance.execution.is_own = batch.size() == 1 && batch.front()->round == arrival.executor_;
  }
  // The requests that waited before this arrival may have been that instance's until now.
  if (set_.HasWaiting()) [[unlikely]]
    set_.WakeForWork(&arrival.wake_);
  return true;
}

void InstancePool::AnnounceRound(Arrival& arrival) {
  arrival.round_ = &RoundOn(*arrival.executor_);
  if (!std::exchange(arrival.round_->is_announced.Under(set_.mutex()), true)) set_.ExpectRound();
}

void InstancePool::Finish(Arrival& arrival) {
  arrival.wake_.Send();
  if (arrival.round_ != nullptr) arrival.round_->Schedule(std::move(arrival.pin_));
  if (arrival.inline_instance_ == nullptr) return;
  PooledInstance& instance = *arrival.inline_instance_;
  if (!instance.instance->runs_on_any_thread()) return set_.Begin(instance);
  const uint64_t end_ns = set_.Execute(instance);
  LockAfter();
  base::MutexLock lock(set_.mutex(), std::adopt_lock);
  set_.Account(instance);
  // Runs the requests that other reactors left because this one was busy with the instance.
  if (set_.HasWaiting()) [[unlikely]] {
    RunWaiting(set_.policy().round_ns() - static_cast<int64_t>(instance.execution.duration_ns),
               end_ns, arrival.wake_);
  }
}

void InstancePool::RunRound(Round& round) {
  PendingWake wake;
  base::MutexLock lock(set_.mutex());
  round.is_announced.Under(set_.mutex()) = false;
  set_.EndRound();
  if (set_.HasWaiting()) RunWaiting(set_.policy().round_ns(), base::NowNs(), wake);
}

void InstancePool::RunWaiting(int64_t left_ns, uint64_t now_ns, PendingWake& wake) {
  // If every instance is busy, the first thread to finish takes more.
  for (PooledInstance* idle = set_.FindIdle(); idle != nullptr && set_.HasWaiting();
       idle = set_.FindIdle()) {
    const InlineChoice choice =
        set_.policy().ChooseInRound(idle->state.Under(set_.mutex()).record, left_ns);
    const bool begins = choice == InlineChoice::kBegin;
    if (choice == InlineChoice::kLeaveToThread ||
        !set_.TakeBatch(*idle, now_ns, begins ? 1 : SIZE_MAX)) {
      return set_.WakeForWork(&wake);
    }
    // More than this batch waits: another instance need not wait for this thread.
    if (set_.HasWaiting()) set_.WakeForWork(&wake);
    set_.mutex().Unlock();
    wake.Send();
    if (begins) {
      set_.Begin(*idle);
      return set_.mutex().Lock();
    }
    now_ns = set_.Execute(*idle);
    left_ns -= static_cast<int64_t>(idle->execution.duration_ns);
    LockAfter();
    set_.Account(*idle);
  }
}

void InstancePool::End() {
  set_.EndThreads();
  changes_.Join();
  set_.JoinThreads();
}

}  // namespace nereid::schedule
