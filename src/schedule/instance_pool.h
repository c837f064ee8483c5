// SPDX-License-Identifier: Apache-2.0
// Runs the requests of a WorkSource on the instances of one model. There is no batching thread: a
// free thread asks the source. That is either an instance's own thread (started when it is needed,
// and ended when it has not been for a while) or, for a backend that allows it and is fast, the
// reactor that received the request, after it has received everything that arrived in the same
// round.
//
// A scheduler pushes a request into its source under the pool's lock and tells the pool:
//
//   InstancePool::Arrival arrival(*request);
//   {
//     pool_.LockFor(arrival);
//     base::MutexLock lock(pool_.mutex(), std::adopt_lock);
//     source_.Push(std::move(request));
//     pool_.Announce(arrival, now_ns);
//   }
//   pool_.Finish(arrival);
//
// The parts: InstanceSet (the instances, and their executions), InstanceWorker (the main function
// of their threads), InstanceChanges (adding and removing them) and InlinePolicy (what a reactor
// may do). The work of the reactors is here.
#pragma once

#include <atomic>
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

  // Starts the threads of instances that need their own, initialises and warms up all of them;
  // returns the first failure. REQUIRES: called once, before anything else.
  base::Status Start(std::vector<NewInstance> instances) {
    return changes_.Apply({.added = std::move(instances), .removed = {}});
  }
  // Implements InstanceHost::ChangeInstances. REQUIRES: Start was called.
  base::Status Change(InstanceChange change) { return changes_.Apply(std::move(change)); }

  base::Mutex& mutex() NEREID_RETURN_CAPABILITY(set_.mutex()) { return set_.mutex(); }

  // Locks the mutex for `arrival`. A reactor waits a moment for one that executes what is brief: to
  // leave it the request and to be given the response would take longer.
  void LockFor(const Arrival& arrival) NEREID_ACQUIRE(set_.mutex()) {
    if (set_.do_reactors_meet()) [[unlikely]]
      return LockAmongReactors(arrival);
    set_.mutex().Lock();
  }
  // Reports that the source has new work, because of `arrival` at `now_ns`.
  void Announce(Arrival& arrival, uint64_t now_ns) NEREID_REQUIRES(set_.mutex());
  // Does what Announce left to the calling thread.
  void Finish(Arrival& arrival) NEREID_EXCLUDES(set_.mutex());
  // Reports that the source's decisions may have changed: wakes (or starts) threads of idle
  // instances that have work, or have to wait for a delay.
  void WakeForWork() NEREID_REQUIRES(set_.mutex()) { set_.WakeForWork(); }
  // Reports that the requests in the source have changed other than by an arrival or by Take: some
  // have left, or lost their turn. The others may be runnable now, or there are none.
  void NoteChange() NEREID_REQUIRES(set_.mutex()) { set_.NoteChange(); }
  // Reports that something that was bound to an instance may have ended.
  void NoteRelease() NEREID_REQUIRES(set_.mutex()) { set_.NoteRelease(); }

  // Instances that are leaving count until they are gone.
  size_t instance_count() const NEREID_REQUIRES(set_.mutex()) { return set_.instance_count(); }
  bool is_stopping() const NEREID_REQUIRES(set_.mutex()) { return set_.is_stopping(); }
  // Ends delays, because no new work is expected. Waits until nothing waits or runs. Returns false
  // at `deadline`.
  bool Stop(base::TimePoint deadline) { return set_.Stop(deadline); }
  // Ends the threads. What still waits stays in the source. Idempotent. REQUIRES: not called by one
  // of them.
  void End();
  // Waits until nothing waits or runs and every thread sleeps, so that it is known which one wakes
  // up.
  bool WaitUntilAsleepForTest(base::TimePoint deadline) {
    return set_.WaitUntilAsleepForTest(deadline);
  }
  // Waits until End has notified the threads, and those that cannot end yet wait again.
  bool WaitUntilEndingForTest(base::TimePoint deadline) {
    return set_.WaitUntilEndingForTest(deadline);
  }

 private:
  // The pool's work on one reactor after a round of arrivals.
  class Round;

  InlineChoice Choose(const PooledInstance& instance) const NEREID_REQUIRES(set_.mutex()) {
    return set_.policy().Choose(instance.state.Under(set_.mutex()).record);
  }
  // LockFor where reactors have met lately.
  void LockAmongReactors(const Arrival& arrival) NEREID_ACQUIRE(set_.mutex());
  // Locks the mutex after an execution.
  void LockAfter() NEREID_ACQUIRE(set_.mutex()) {
    if (set_.do_reactors_meet()) [[unlikely]]
      return set_.mutex().LockSoon();
    set_.mutex().Lock();
  }
  // Waits until an instance is idle, and locks the mutex. Returns false if that took too long, or
  // enough reactors wait.
  bool TryLockWithIdle() NEREID_TRY_ACQUIRE(true, set_.mutex());
  // Returns whether the reactor of `arrival` executes `instance` itself, in Finish: it has taken a
  // batch of at most `max_requests`.
  bool TakeInline(Arrival& arrival, PooledInstance& instance, uint64_t now_ns, size_t max_requests)
      NEREID_REQUIRES(set_.mutex());
  // Lets the reactor of `arrival` look for work after this round.
  void AnnounceRound(Arrival& arrival) NEREID_REQUIRES(set_.mutex());
  Round& RoundOn(core::RoundExecutor& executor) NEREID_REQUIRES(set_.mutex());
  void RunRound(Round& round) NEREID_EXCLUDES(set_.mutex());
  // Runs what is ready on the calling reactor, for about as long as its time lasts, if permitted,
  // and leaves the rest to threads. Releases the lock while it runs. The caller sends `wake` once
  // it has released the lock.
  void RunWaiting(int64_t left_ns, uint64_t now_ns, PendingWake& wake)
      NEREID_REQUIRES(set_.mutex());

  InstanceSet set_;
  InstanceChanges changes_;
  std::atomic<int> waiting_reactors_{0};
  ArrivalHistory arrivals_ NEREID_GUARDED_BY(set_.mutex());
  std::vector<std::unique_ptr<Round>> rounds_ NEREID_GUARDED_BY(set_.mutex());
};

// A request on its way into the source, and what its thread then does for the pool. Keeps the
// model: once queued, the request may complete on another thread and release its own pin.
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
  PendingWake wake_;
};

}  // namespace nereid::schedule
