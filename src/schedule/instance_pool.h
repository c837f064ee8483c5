// SPDX-License-Identifier: Apache-2.0
// Runs what a WorkSource gives on the instances of one model. There is no batching thread: the
// thread that is free asks the source. That is either an instance's own thread (started when it is
// needed, and ended when it has not been for a while) or, for a backend that allows it and is
// quick, the reactor that received the request, after it has taken in everything that arrived in
// the same round.
//
// A scheduler pushes a request into its source under the pool's lock and tells the pool:
//
//   InstancePool::Arrival arrival(*request);
//   {
//     base::MutexLock lock(pool_.mutex());
//     source_.Push(std::move(request));
//     pool_.Announce(arrival, now_ns);
//   }
//   pool_.Finish(std::move(arrival));
//
// The parts: InstanceSet (the instances, and what they execute), InstanceWorker (what their threads
// do), InstanceChanges (how they come and go) and InlinePolicy (what a reactor may do). What the
// reactors do is here.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "core/model.h"
#include "core/round_executor.h"
#include "core/scheduler.h"
#include "schedule/inline_policy.h"
#include "schedule/instance_change.h"
#include "schedule/instance_changes.h"
#include "schedule/instance_pool_options.h"
#include "schedule/instance_set.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// Thread-safe.
class InstancePool {
 public:
  class Arrival;

  // `model`, `source` and everything in `context` outlive the pool.
  InstancePool(core::Model& model, WorkSource& source, SchedulerContext context,
               InstancePoolOptions options);
  ~InstancePool();
  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

  // Starts the threads of instances that need their own, initialises and warms up all of them; the
  // first failure is returned. REQUIRES: called once, before anything else.
  base::Status Start(std::vector<NewInstance> instances) {
    return changes_.Apply({.added = std::move(instances), .removed = {}});
  }
  // As InstanceHost::ChangeInstances. REQUIRES: Start was called.
  base::Status Change(InstanceChange change) { return changes_.Apply(std::move(change)); }

  base::Mutex& mutex() NEREID_RETURN_CAPABILITY(set_.mutex()) { return set_.mutex(); }

  // The source has new work, because of `arrival`, which came at `now_ns`.
  void Announce(Arrival& arrival, uint64_t now_ns) NEREID_REQUIRES(set_.mutex());
  // What Announce decided that the calling thread does itself.
  void Finish(Arrival arrival) NEREID_EXCLUDES(set_.mutex());
  // The source's decisions may have changed: wakes (or starts) threads of idle instances that have
  // work, or a delay to watch.
  void WakeForWork() NEREID_REQUIRES(set_.mutex()) { set_.WakeForWork(); }
  // To be called when what waits in the source has changed other than by an arrival or by Take:
  // requests have left, or lost their turn. What is left may be runnable now, or nothing is.
  void NoteChange() NEREID_REQUIRES(set_.mutex()) { set_.NoteChange(); }
  // To be called when something that was bound to an instance may be over.
  void NoteRelease() NEREID_REQUIRES(set_.mutex()) { set_.NoteRelease(); }

  bool is_stopping() const NEREID_REQUIRES(set_.mutex()) { return set_.is_stopping(); }
  // No new work is expected: delays are over. Waits until nothing waits or runs; false when
  // `deadline` passes first.
  bool Stop(base::TimePoint deadline) { return set_.Stop(deadline); }
  // Ends the threads. What still waits stays in the source. Idempotent. REQUIRES: not called by one
  // of them.
  void End();
  // Waits until nothing waits or runs and every thread sleeps, so that it is known who wakes up.
  bool WaitUntilAsleepForTest(base::TimePoint deadline) {
    return set_.WaitUntilAsleepForTest(deadline);
  }
  // Waits until End has told the threads, and those that have to go on waiting do so.
  bool WaitUntilEndingForTest(base::TimePoint deadline) {
    return set_.WaitUntilEndingForTest(deadline);
  }

 private:
  // The pool's work on one reactor after a round of arrivals.
  class Round;

  InlineChoice Choose(const PooledInstance& instance) const NEREID_REQUIRES(set_.mutex()) {
    return set_.policy().Choose(instance.state.Under(set_.mutex()).record);
  }
  // Whether the reactor of `arrival` executes `instance` itself, in Finish: it has taken a batch of
  // at most `max_requests`.
  bool TakeInline(Arrival& arrival, PooledInstance& instance, uint64_t now_ns, size_t max_requests)
      NEREID_REQUIRES(set_.mutex());
  // `arrival` lets its reactor look for work after this round.
  void AnnounceRound(Arrival& arrival) NEREID_REQUIRES(set_.mutex());
  Round& RoundOn(core::RoundExecutor& executor) NEREID_REQUIRES(set_.mutex());
  void RunRound(Round& round) NEREID_EXCLUDES(set_.mutex());
  // Runs what is ready on the calling reactor, for about as long as is left of its time and where
  // that is allowed, and leaves the rest to threads. Lets the lock go while it runs.
  void RunWaiting(int64_t left_ns, uint64_t now_ns) NEREID_REQUIRES(set_.mutex());

  InstanceSet set_;
  InstanceChanges changes_;
  ArrivalHistory arrivals_ NEREID_GUARDED_BY(set_.mutex());
  std::vector<std::unique_ptr<Round>> rounds_ NEREID_GUARDED_BY(set_.mutex());
};

// A request on its way into the source, and what its thread does for the pool after that. Keeps the
// model: once queued, the request may be answered by another thread and its own pin be gone.
class InstancePool::Arrival {
 public:
  explicit Arrival(const core::Request& request)
      : pin_(request.model.Duplicate()), executor_(request.round) {}

 private:
  friend class InstancePool;

  core::ModelHandle pin_;
  core::RoundExecutor* const executor_;
  Round* round_ = nullptr;
  PooledInstance* inline_instance_ = nullptr;
};

}  // namespace nereid::schedule
