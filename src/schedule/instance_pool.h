// SPDX-License-Identifier: Apache-2.0
// Runs what a WorkSource gives on the instances of one model. There is no batching thread: whoever
// is free asks the source. That is either an instance's own thread (started when it is needed, and
// ended when it has not been for a while) or, for a backend that allows it and is quick, the
// reactor that received the request, after it has taken in everything that arrived in the same
// round.
//
// A scheduler pushes a request into its source under the pool's lock and tells the pool:
//
//   InstancePool::Arrival arrival(pool_, *request);
//   {
//     base::MutexLock lock(pool_.mutex());
//     source_.Push(std::move(request));
//     pool_.Announce(arrival, now_ns);
//   }
//   pool_.Finish(std::move(arrival));
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "base/thread_reaper.h"
#include "core/model.h"
#include "core/round_executor.h"
#include "core/scheduler.h"
#include "schedule/instance_change.h"
#include "schedule/rate_limiter.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// What the pool does with its instances.
struct InstancePoolOptions {
  // An instance whose executions take longer than this on average never runs on a reactor; 0: none.
  // A batch may take several times as long, once for each of its requests up to eight.
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
  // Requests that arrive in one round are seen together before any runs.
  bool collects_rounds = false;
  // Cancelled requests are answered instead of executed. Not where their place in a batch matters.
  bool drops_cancelled = true;
  // Instances with threads of their own initialise and warm up at the same time.
  bool starts_in_parallel = false;
  // Called for each instance on the thread that executes it, before it takes any work.
  std::function<base::Status(core::Instance&)> warm_up;
  // Null: instances run whenever there is work.
  RateLimiter* rate_limiter = nullptr;
  // Joins threads that ended because there was nothing to do; outlives the pool. Null: the pool
  // does when it needs another, or ends.
  base::ThreadReaper* reaper = nullptr;
  // How long the thread of an instance that may run on any waits for work before it ends, with what
  // it keeps for its next request: a server of a thousand models needs few of them at a time.
  std::chrono::nanoseconds idle_thread_lifetime = std::chrono::milliseconds(500);
};

// Thread-safe.
class InstancePool {
 public:
  class Arrival;

  // `model` and `source` outlive the pool.
  InstancePool(core::Model& model, WorkSource& source, InstancePoolOptions options);
  ~InstancePool();
  InstancePool(const InstancePool&) = delete;
  InstancePool& operator=(const InstancePool&) = delete;

  // Starts the threads of instances that need their own, initialises and warms them up there; the
  // first failure is returned. `claims` says what each instance needs of the rate limiter (on_grant
  // is set here). Once, before anything else.
  base::Status Start(std::vector<std::unique_ptr<core::Instance>> instances,
                     std::vector<RateLimiter::ClaimOptions> claims = {});
  // As InstanceHost::ChangeInstances; after Start.
  base::Status Change(InstanceChange change);

  base::Mutex& mutex() NEREID_RETURN_CAPABILITY(mutex_) { return mutex_; }

  // The source has new work, because of `arrival`, which came at `now_ns`.
  void Announce(Arrival& arrival, uint64_t now_ns) NEREID_REQUIRES(mutex_);
  // What Announce decided that the calling thread does itself.
  void Finish(Arrival arrival) NEREID_EXCLUDES(mutex_);
  // The source's decisions may have changed: wakes (or starts) threads of idle instances that have
  // work, or a delay to watch.
  void WakeForWork() NEREID_REQUIRES(mutex_);
  // To be called when what waits in the source has changed other than by an arrival or by Take:
  // requests have left, or lost their turn. What is left may be runnable now, or nothing is.
  void NoteChange() NEREID_REQUIRES(mutex_);

  bool is_stopping() const NEREID_REQUIRES(mutex_) { return is_stopping_; }
  // No new work is expected: delays are over. Waits until nothing waits or runs; false when
  // `deadline` passes first.
  bool Stop(base::TimePoint deadline);
  // Ends the threads. What still waits stays in the source. Not from one of them; idempotent.
  void End();
  // Waits until nothing waits or runs and every thread sleeps, so that it is known who wakes up.
  bool WaitUntilAsleepForTest(base::TimePoint deadline);
  // To be called when something that was bound to an instance may be over.
  void NoteRelease() NEREID_REQUIRES(mutex_);

 private:
  // An instance and what the pool knows about it. Guarded by mutex_ but for the constant fields.
  //
  // Its life: it is started and not among slots_ (its thread, where it needs one of its own, waits
  // to be admitted or dropped); it is admitted; it is leaving (it runs what is bound to it); it is
  // over (nothing is bound to it) and gone as soon as it is idle and without a thread.
  struct Slot {
    std::unique_ptr<core::Instance> instance;  // constant
    size_t index = 0;                          // its number; constant once admitted
    uint64_t id = 0;                           // as well, and never given again
    bool is_admitted = false;
    bool is_dropped = false;  // instead of being admitted
    bool is_leaving = false;
    base::Thread thread;
    base::CondVar wake;
    bool is_busy = false;
    bool has_thread = false;
    bool is_waiting = false;     // its thread sleeps on `wake`
    bool is_notified = false;    // and has been told
    uint64_t wait_until_ns = 0;  // 0: no deadline
    uint64_t taken_ns = 0;       // when it became busy
    uint64_t duration_ns = 0;    // of the last execution
    size_t executed_requests = 0;
    bool is_begun = false;  // its thread is to end the execution
    uint64_t execution_count = 0;
    uint64_t average_ns = 0;                    // against the inline budget, exponentially weighted
    uint64_t watched_runs = 0;                  // the next so many are timed with care
    std::vector<core::RequestPtr> batch;        // of whoever made it busy
    std::unique_ptr<RateLimiter::Claim> claim;  // constant; null where nothing is limited
  };

  // The pool's work on one reactor after a round of arrivals.
  class Round;

  using Slots = std::vector<std::unique_ptr<Slot>>;

  base::Result<Slots> MakeSlots(std::vector<InstanceChange::Added> instances);
  // Initialises and warms up; the first failure. What had been started by then waits to be dropped.
  base::Status StartSlots(const Slots& slots);
  // Starts the thread of `slot`, which initialises its instance; how that went.
  std::future<base::Status> StartThread(Slot& slot);
  // Whether the slot that the calling thread has initialised is to be used.
  bool WaitForAdmission(Slot& slot);
  void AdmitLocked(Slots slots) NEREID_REQUIRES(mutex_);
  // Ends what was started and is not to be used.
  void Drop(Slots slots);
  // Whether `slot` is leaving and nothing is bound to it any more.
  bool IsOver(const Slot& slot) const NEREID_REQUIRES(mutex_) {
    return slot.is_leaving && source_.IsReleased(slot.index);
  }
  // The body of a thread that takes apart what is leaving, as soon as that can be.
  void RetireLeaving();
  bool MayRunInline(const Slot& slot) const NEREID_REQUIRES(mutex_);
  // Whether a reactor may begin the execution of what waits, and wait for its end for a moment: a
  // quick instance's, and a single request's. With several, the reactor had better read the others.
  bool MayBegin(const Slot& slot, uint64_t now_ns) NEREID_REQUIRES(mutex_);
  // Whether `slot` was quick, often enough to know.
  bool IsQuick(const Slot& slot, int64_t limit_ns) const NEREID_REQUIRES(mutex_);
  // Whether it matters, and is in doubt, how much of the time that passes is its execution's. For
  // whoever has made `slot` busy.
  bool IsWatched(const Slot& slot) const;
  Slot* IdleSlot() NEREID_REQUIRES(mutex_);
  // Moves the next batch into `slot` and marks it busy. False when nothing is to be run now.
  bool TakeBatch(Slot& slot, uint64_t now_ns) NEREID_REQUIRES(mutex_);
  void Notify(Slot& slot) NEREID_REQUIRES(mutex_);
  // WakeForWork where decisions differ between instances.
  void WakeEachForWork() NEREID_REQUIRES(mutex_);
  // Wakes instances that stand in line for resources while others have taken their work: whoever
  // stands behind them waits for nothing.
  void WakeThoseInVain() NEREID_REQUIRES(mutex_);
  // In line for resources: the grant wakes it.
  static bool IsInLine(const Slot& slot) {
    return slot.claim != nullptr && slot.claim->is_waiting();
  }
  // Runs the batch that TakeBatch put into `slot`, and times it: where the slot is watched, without
  // the time in which others had the processor. Returns when that ended, for whatever happens next.
  uint64_t Execute(Slot& slot) NEREID_EXCLUDES(mutex_);
  // The same as far as it goes at once; the slot's thread does the rest.
  void Begin(Slot& slot) NEREID_EXCLUDES(mutex_);
  void DropCancelled(Slot& slot) NEREID_EXCLUDES(mutex_);
  // `slot` has run its batch and is idle again.
  void Account(Slot& slot) NEREID_REQUIRES(mutex_);
  // Whether a reactor is about to look for work that it may run on `slot` itself.
  bool IsLeftToReactor(const Slot& slot) const NEREID_REQUIRES(mutex_) {
    return scheduled_rounds_ > 0 && MayRunInline(slot);
  }
  // How long a reactor runs batches before it turns to its sockets again.
  int64_t InlineRoundNs() const;
  void RunRound(Round& round) NEREID_EXCLUDES(mutex_);
  // Runs what is ready on the calling reactor, for about as long as is left of its time and where
  // that is allowed, and leaves the rest to threads. Lets the lock go while it runs.
  void RunWaiting(int64_t left_ns, uint64_t now_ns) NEREID_REQUIRES(mutex_);
  // `arrival` lets its reactor look for work after this round.
  void AnnounceRound(Arrival& arrival) NEREID_REQUIRES(mutex_);
  Round& RoundOn(core::RoundExecutor& executor) NEREID_REQUIRES(mutex_);
  bool IsIdle() const NEREID_REQUIRES(mutex_) { return busy_count_ == 0 && !source_.HasWaiting(); }
  bool IsAsleep() const NEREID_REQUIRES(mutex_);
  // Tells those who wait for the pool to be idle.
  void NotifyIdle() NEREID_REQUIRES(mutex_);
  bool WaitForIdle(base::TimePoint deadline) NEREID_REQUIRES(mutex_);
  // Whether `slot` holds, or waits in line for, resources that it has no work for.
  bool HoldsInVain(const Slot& slot) NEREID_REQUIRES(mutex_);
  void ThreadMain(Slot& slot);
  // False: there was none for so long that the thread is to end.
  bool WaitForWork(Slot& slot) NEREID_REQUIRES(mutex_);

  core::Model& model_;
  WorkSource& source_;
  const InstancePoolOptions options_;

  base::Mutex mutex_;
  // Only Start, Change and the thread that retires change which there are.
  Slots slots_ NEREID_GUARDED_BY(mutex_);
  uint64_t last_id_ NEREID_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, size_t> leaving_ NEREID_GUARDED_BY(mutex_);  // numbers, by id
  base::CondVar left_;  // signalled when something that is leaving came closer to its end
  bool is_retiring_ NEREID_GUARDED_BY(mutex_) = false;  // the thread below is at it
  base::Thread retirer_;
  base::CondVar idle_;  // signalled when the pool may have become idle
  size_t idle_waiters_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t scheduled_rounds_ NEREID_GUARDED_BY(mutex_) = 0;
  uint32_t crowded_ NEREID_GUARDED_BY(mutex_) = 0;  // arrivals until a reactor may begin
  size_t busy_count_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Round>> rounds_ NEREID_GUARDED_BY(mutex_);
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
  Slot* inline_slot_ = nullptr;
};

}  // namespace nereid::schedule
