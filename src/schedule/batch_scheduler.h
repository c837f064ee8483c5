// SPDX-License-Identifier: Apache-2.0
// Runs one model's requests on its instances, alone or in dynamic batches. There is no batching
// thread: whoever is free forms the batch. That is either an instance's own thread (started when it is
// first needed) or, for a backend that allows it and is quick, the reactor that received the request,
// after it has taken in everything that arrived in the same round.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "core/model.h"
#include "core/round_executor.h"
#include "core/scheduler.h"
#include "schedule/batch_queue.h"

namespace nereid::schedule {

struct BatchSchedulerOptions {
  BatchPolicy policy;
  // An instance whose executions take longer than this on average never runs on a reactor.
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
};

// Thread-safe.
class BatchScheduler final : public core::Scheduler {
 public:
  // Starts the threads of instances that need their own and initialises them there; the first failure
  // is returned. `model` outlives the scheduler.
  static base::Result<std::unique_ptr<BatchScheduler>> Create(
      core::Model& model, BatchSchedulerOptions options,
      std::vector<std::unique_ptr<core::Instance>> instances);
  // Answers what still waits and joins the threads. Not from one of them.
  ~BatchScheduler() override;

  void Enqueue(core::RequestPtr request) override;
  void OnCancelled(core::Request& request) override;
  bool Stop(base::TimePoint deadline) override;

  // Waits until nothing is queued or running; false when `deadline` passes first.
  bool WaitUntilIdleForTest(base::TimePoint deadline);

 private:
  // An instance and what the scheduler knows about it. Fields below `mutex` are guarded by mutex_.
  struct Slot {
    std::unique_ptr<core::Instance> instance;  // constant
    base::Thread thread;
    base::CondVar wake;
    bool is_busy = false;
    bool has_thread = false;
    bool is_waiting = false;   // its thread sleeps on `wake`
    bool is_notified = false;  // and has been told
    uint64_t wait_until_ns = 0;  // 0: no deadline
    uint64_t execution_count = 0;
    uint64_t average_ns = 0;  // of an execution, exponentially weighted
    std::vector<core::RequestPtr> batch;  // of whoever made it busy
  };

  // This scheduler's work on one reactor after a round of arrivals.
  class Round;

  BatchScheduler(core::Model& model, BatchSchedulerOptions options);

  bool MayRunInline(const Slot& slot) const NEREID_REQUIRES(mutex_);
  Slot* IdleSlot() NEREID_REQUIRES(mutex_);
  // Moves the next batch into `slot` and marks it busy. False when nothing is to be run now.
  bool TakeBatch(Slot& slot) NEREID_REQUIRES(mutex_);
  // Wakes (or starts) the thread of an idle instance if there is work or a delay to watch.
  void WakeForWork() NEREID_REQUIRES(mutex_);
  void Notify(Slot& slot) NEREID_REQUIRES(mutex_);
  // Runs the batch that TakeBatch put into `slot`, and accounts for it.
  void Execute(Slot& slot) NEREID_EXCLUDES(mutex_);
  // Runs what is ready on the calling reactor while that is allowed, and leaves the rest to threads.
  void RunRound() NEREID_EXCLUDES(mutex_);
  Round& RoundOn(core::RoundExecutor& executor) NEREID_REQUIRES(mutex_);
  bool WaitUntilIdle(base::TimePoint deadline) NEREID_REQUIRES(mutex_);
  void ThreadMain(Slot& slot);
  void WaitForWork(Slot& slot) NEREID_REQUIRES(mutex_);

  core::Model& model_;
  const BatchSchedulerOptions options_;
  const bool may_inline_;  // the policy allows it at all
  std::vector<std::unique_ptr<Slot>> slots_;  // constant after Create

  base::Mutex mutex_;
  base::CondVar idle_;  // signalled when the scheduler may have become idle
  BatchQueue queue_ NEREID_GUARDED_BY(mutex_);
  size_t busy_count_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Round>> rounds_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::schedule
