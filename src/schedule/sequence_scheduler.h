// SPDX-License-Identifier: Apache-2.0
// The sequence batcher: requests of one sequence run one after another, in one slot of one
// instance, which they keep until the sequence has ended and its last response is gone.
// docs/scheduling.md states the rules for users.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/timers.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "core/sequence_states.h"
#include "schedule/instance_change.h"
#include "schedule/instance_pool.h"
#include "schedule/instance_pool_options.h"
#include "schedule/sequence_plan.h"
#include "schedule/sequence_source.h"
#include "schedule/sequence_table.h"

namespace nereid::schedule {

// The arguments of a scheduler of sequences.
struct SequenceSchedulerOptions {
  // Null or empty: the model keeps no states.
  std::shared_ptr<const core::StatePlan> states = nullptr;
  // Nothing runs before so many requests have waited in slots, and so many in the backlog, at the
  // same time, once.
  size_t hold_until_waiting = 0;
  size_t hold_until_backlog = 0;
  InstancePoolOptions pool = {};
};

// Thread-safe.
class SequenceScheduler final : public core::Scheduler, public InstanceHost {
 public:
  // Starts, initialises and warms up the instances; returns the first failure. `model`, whose
  // configuration has sequence_batching, and everything in `context` outlive the scheduler.
  static base::Result<std::unique_ptr<SequenceScheduler>> Create(
      core::Model& model, SchedulerContext context, SequenceSchedulerOptions options,
      std::vector<NewInstance> instances);
  // Completes the requests that still wait and joins the threads. Not from one of them. REQUIRES:
  // no request that was executed is left; each pins the model.
  ~SequenceScheduler() override;

  void Enqueue(core::RequestPtr request) override;
  // Cancels all waiting requests of the sequence, and ends it.
  void OnCancelled(core::Request& request) override;
  // For iterative sequences.
  bool Reschedule(core::RequestPtr& request) override;
  void RefuseStarts() override;
  bool WaitForSequences(base::TimePoint deadline) override;
  size_t SequenceCount() override;
  bool HasSequence(const core::CorrelationId& id) override;
  core::SchedulerLoad ReadLoad() override;
  std::optional<core::SequencesReading> ReadSequences(size_t most) override;
  // Refuses new sequences; returns when nothing waits or runs.
  bool Stop(base::TimePoint deadline) override;
  // Sequences keep their slots.
  base::Status ChangeInstances(InstanceChange change) override {
    return pool_.Change(std::move(change));
  }

  // Waits until nothing waits or runs and threads sleep. Returns false at `deadline`.
  bool WaitUntilIdleForTest(base::TimePoint deadline) {
    return pool_.WaitUntilAsleepForTest(deadline);
  }
  size_t FreeSlotCountForTest();

 private:
  class Sink;

  SequenceScheduler(core::Model& model, SchedulerContext context, SequenceSchedulerOptions options,
                    size_t instance_count);
  std::unique_ptr<SequenceSource> MakeSource();
  InstancePoolOptions PoolOptions() const;

  // Checks the conditions for a request to join a sequence. Sets the id of an iterative one.
  base::Status Prepare(core::Request& request);
  base::Status MissingStartError(const core::Request& request) const;
  // The part of Enqueue under the lock. `request` is left alone if it is refused.
  struct Admission;
  void Admit(core::RequestPtr& request, InstancePool::Arrival& arrival, Admission& admission)
      NEREID_REQUIRES(pool_.mutex());
  // Called by the request's sink.
  void OnReleased(Sequence& sequence, core::Request& request);
  void OnGone(Sequence& sequence);
  void OnTimer();
  // Sets the timer to the time when a sequence has been idle, or a request in the backlog has
  // waited, for too long.
  void SetTimer() NEREID_REQUIRES(pool_.mutex());
  // Notifies threads that wait for the end of sequences.
  void NoteSequences() NEREID_REQUIRES(pool_.mutex());
  // Records that requests in `refused` no longer wait.
  void NoteRefused(const SequenceTable::Refused& refused) NEREID_REQUIRES(pool_.mutex());

  core::Model& model_;
  const SequenceSchedulerOptions options_;
  const SequencePlan plan_;
  SequenceTable table_ NEREID_GUARDED_BY(pool_.mutex());
  const std::unique_ptr<SequenceSource> source_ NEREID_PT_GUARDED_BY(pool_.mutex());
  InstancePool pool_;
  uint64_t timer_at_ns_ NEREID_GUARDED_BY(pool_.mutex()) = 0;  // 0: not set
  bool is_ending_ NEREID_GUARDED_BY(pool_.mutex()) = false;
  bool refuses_starts_ NEREID_GUARDED_BY(pool_.mutex()) = false;
  base::CondVar sequences_over_;
  std::atomic<uint64_t> next_generated_id_{1};
  std::unique_ptr<base::Timer> timer_;  // null while the scheduler is destroyed
};

}  // namespace nereid::schedule
