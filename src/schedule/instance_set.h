// SPDX-License-Identifier: Apache-2.0
// The instances of one model, which execute the requests of a WorkSource. Everything is decided
// under one short lock; executions happen outside it. An instance is either idle or busy: the
// thread that will execute it makes it busy together with its batch, under the lock, so that no
// request is ever between two owners. That thread is the instance's own (InstanceWorker) or a
// reactor (InstancePool).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread_reaper.h"
#include "core/model.h"
#include "core/open_requests.h"
#include "core/scheduler.h"
#include "schedule/inline_policy.h"
#include "schedule/instance_pool_options.h"
#include "schedule/instance_roster.h"
#include "schedule/pooled_instance.h"
#include "schedule/thread_shortage.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// Thread-safe.
class InstanceSet final : public core::OpenRequests::Watcher {
 public:
  // `model`, `source` and everything in `context` outlive the set.
  InstanceSet(core::Model& model, WorkSource& source, const SchedulerContext& context,
              InstancePoolOptions options);
  // REQUIRES: the threads have ended (JoinThreads).
  ~InstanceSet() = default;
  InstanceSet(const InstanceSet&) = delete;
  InstanceSet& operator=(const InstanceSet&) = delete;

  base::Mutex& mutex() const NEREID_RETURN_CAPABILITY(mutex_) { return mutex_; }
  const InstancePoolOptions& options() const { return options_; }
  const InlinePolicy& policy() const { return policy_; }
  base::ThreadReaper& reaper() const { return reaper_; }
  bool is_stopping() const NEREID_REQUIRES(mutex_) { return is_stopping_; }
  bool is_ending() const NEREID_REQUIRES(mutex_) { return is_ending_; }

  // -- Executions. --
  bool HasWaiting() const NEREID_REQUIRES(mutex_) { return source_.HasWaiting(); }
  // Returns what an idle `instance` may run now.
  BatchDecision Decide(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return source_.Decide(IndexOf(instance), base::NowNs());
  }
  // Returns an instance that could take work; null if all are busy.
  PooledInstance* FindIdle() NEREID_REQUIRES(mutex_) {
    for (const auto& instance : roster_.instances()) {
      if (!IsBusy(*instance) && !IsOver(*instance)) return instance.get();
    }
    return nullptr;
  }
  // Moves the next batch into an idle `instance`, which is busy from now on. Returns false if there
  // is nothing for it to run now, or more than `max_requests` would run together.
  bool TakeBatch(PooledInstance& instance, uint64_t now_ns, size_t max_requests = SIZE_MAX)
      NEREID_REQUIRES(mutex_);
  // Executes the batch that the calling thread has taken, and times it. Returns the time of its
  // end. Account must follow.
  uint64_t Execute(PooledInstance& instance) NEREID_EXCLUDES(mutex_);
  // Records the execution; the instance is idle again.
  void Account(PooledInstance& instance) NEREID_REQUIRES(mutex_);
  // Begins to execute what the calling thread has taken, within the policy's patience. The
  // instance's thread does the rest. Also records the execution.
  void Begin(PooledInstance& instance) NEREID_EXCLUDES(mutex_);

  // -- Which thread works. -- Called when decisions may have changed: wakes (or starts) threads of
  // idle instances that have work, or have to wait for a delay. One of them is told by `pending`,
  // if that is given.
  void WakeForWork(PendingWake* pending = nullptr) NEREID_REQUIRES(mutex_);
  // Wakes one instance, which was granted its resources.
  void WakeGranted(PooledInstance& instance) NEREID_REQUIRES(mutex_) { Notify(instance); }
  size_t instance_count() const NEREID_REQUIRES(mutex_) { return roster_.instances().size(); }
  // Called when the requests in the source have changed other than by an arrival or by TakeBatch.
  void NoteChange() NEREID_REQUIRES(mutex_);
  // Called when a reactor finds all instances busy, or has waited for one: from now on, and for
  // some thousands of executions, others are told whether it pays to wait.
  void NoteMeeting() NEREID_REQUIRES(mutex_) { told_executions_ = kToldExecutions; }
  bool tells_reactors() const NEREID_REQUIRES(mutex_) { return told_executions_ > 0; }
  // Whether reactors have met lately. Without the lock, it may be late.
  bool do_reactors_meet() const {
    return meeting_.load(std::memory_order_relaxed) != Meeting::kNone;
  }
  // Whether all instances are busy and one of them will not be for long. Without the lock, it may
  // be late.
  bool is_briefly_full() const {
    return meeting_.load(std::memory_order_relaxed) == Meeting::kBrieflyFull;
  }
  // Called by a reactor that has waited in vain: until the next execution, others do not wait.
  void GiveUpWaiting() {
    Meeting full = Meeting::kBrieflyFull;
    meeting_.compare_exchange_strong(full, Meeting::kNoWait, std::memory_order_relaxed);
  }
  // Called when a reactor will look for work that it may run itself, or has just done so. Until
  // then threads leave such work alone.
  void ExpectRound() NEREID_REQUIRES(mutex_) { ++expected_rounds_; }
  void EndRound() NEREID_REQUIRES(mutex_) { --expected_rounds_; }
  // Whether a reactor is about to look for work that it may run on `instance` itself.
  bool IsLeftToReactor(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return expected_rounds_ > 0 && MayRunInline(instance);
  }
  // Whether reactors run this model's executions, judging by the first instance.
  bool RunsInline() const NEREID_REQUIRES(mutex_) {
    return !roster_.instances().empty() && MayRunInline(*roster_.instances().front());
  }
  // Returns whether `instance` takes no more work.
  bool IsOver(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return roster_.IsOver(mutex_, instance);
  }
  // Returns whether `instance` holds, or waits in line for, resources that it has no work for.
  bool HoldsInVain(const PooledInstance& instance) const NEREID_REQUIRES(mutex_);
  // Whether the thread of `instance` will have nothing more to do.
  bool MayEnd(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return (is_ending_ || roster_.IsDone(mutex_, instance)) && !IsBusy(instance);
  }
  void NoteThreadEnded(const PooledInstance& instance) NEREID_REQUIRES(mutex_);
  // Notifies threads that wait for the set to be idle, or for its threads to sleep.
  void NotifyIdle() NEREID_REQUIRES(mutex_);

  // -- Adding and removing instances (InstanceChanges). -- Starts what instances need that have no
  // threads yet. Fails with UNAVAILABLE if there can be no thread for it.
  base::Status Prepare() { return shortage_.Prepare(); }
  // See InstanceRoster.
  void ExpectToLeave(const std::vector<const core::Instance*>& instances, bool is_expected)
      NEREID_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    roster_.ExpectToLeave(instances, is_expected);
  }
  // Makes an instance that is not part of the set yet.
  std::unique_ptr<PooledInstance> Make(std::unique_ptr<core::Instance> instance, bool is_limited)
      NEREID_EXCLUDES(mutex_);
  // Lets the instances take work from now on.
  void Admit(PooledInstances added) NEREID_REQUIRES(mutex_);
  // See InstanceRoster.
  std::vector<uint64_t> Retire(const std::vector<const core::Instance*>& removed)
      NEREID_REQUIRES(mutex_);
  // Called when something that was bound to an instance may have ended.
  void NoteRelease() NEREID_REQUIRES(mutex_);
  // Called when the backend of a leaving instance has no request any more.
  void OnNoneOpen() override NEREID_EXCLUDES(mutex_) {
    base::MutexLock lock(mutex_);
    NoteRelease();
  }
  // Waits until each of `ids` is destroyed, or something is bound to it, or the threads have to
  // end.
  void WaitUntilGoneOrBound(const std::vector<uint64_t>& ids) NEREID_REQUIRES(mutex_);
  // Waits for an instance that is over and takes it out of the set; null if none is leaving, or the
  // threads have to end. ForgetRetired follows once it is destroyed.
  std::unique_ptr<PooledInstance> WaitForRetired() NEREID_REQUIRES(mutex_);
  void ForgetRetired(uint64_t id) NEREID_REQUIRES(mutex_);

  // -- The end. -- No new work is expected. Waits until nothing waits or runs. Returns false at
  // `deadline`.
  bool Stop(base::TimePoint deadline) NEREID_EXCLUDES(mutex_);
  // Tells all threads to end. What still waits stays in the source.
  void EndThreads() NEREID_EXCLUDES(mutex_);
  // Waits for their end. REQUIRES: the instances no longer change.
  void JoinThreads() NEREID_EXCLUDES(mutex_);
  // Waits until nothing waits or runs and every thread sleeps, so that it is known which one wakes
  // up.
  bool WaitUntilAsleepForTest(base::TimePoint deadline) NEREID_EXCLUDES(mutex_);
  // Waits until the threads have been told to end and have all checked whether they can.
  bool WaitUntilEndingForTest(base::TimePoint deadline) NEREID_EXCLUDES(mutex_);

 private:
  // What reactors are told.
  enum class Meeting : uint8_t {
    kNone,         // reactors have not met lately
    kNoWait,       // an instance is idle, or it would not pay to wait for one
    kBrieflyFull,  // it pays to wait
  };
  static constexpr uint32_t kToldExecutions = 4096;

  bool IsBusy(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return instance.state.Under(mutex_).is_busy;
  }
  size_t IndexOf(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return instance.state.Under(mutex_).index;
  }
  // Returns whether `instance` may be woken for work: others are busy, over, or wait for a grant.
  bool IsAvailable(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return !IsBusy(instance) && !IsOver(instance) && !instance.claim.is_in_line();
  }
  // Returns whether a reactor may run `instance` to the end.
  bool MayRunInline(const PooledInstance& instance) const NEREID_REQUIRES(mutex_) {
    return instance.state.Under(mutex_).record.may_run();
  }
  void DropCancelled(PooledInstance::Execution& execution) NEREID_EXCLUDES(mutex_);
  // Tells reactors whether it pays to wait, now that `instance` became busy or idle.
  [[gnu::noinline]] void TellReactors(const PooledInstance& instance) NEREID_REQUIRES(mutex_);
  // Does so after an execution, which counts.
  [[gnu::noinline]] void TellOfEnd(PooledInstance& instance) NEREID_REQUIRES(mutex_);

  // Returns false if `instance` needs a thread and there can be none now.
  bool Notify(PooledInstance& instance, PendingWake* pending = nullptr) NEREID_REQUIRES(mutex_);
  // WakeForWork if one decision applies to all instances.
  void WakeOneForWork(PendingWake* pending) NEREID_REQUIRES(mutex_);
  // WakeForWork if decisions differ between instances.
  void WakeEachForWork(PendingWake* pending) NEREID_REQUIRES(mutex_);
  // Wakes instances that wait in line for resources although others have taken their work, because
  // they block those behind them in the line.
  void WakeThoseInVain() NEREID_REQUIRES(mutex_);

  bool IsIdle() const NEREID_REQUIRES(mutex_) { return busy_count_ == 0 && !source_.HasWaiting(); }
  // Returns whether no thread is awake, or about to be.
  bool AreThreadsAsleep() const NEREID_REQUIRES(mutex_);
  bool WaitForIdle(base::TimePoint deadline) NEREID_REQUIRES(mutex_);

  core::Model& model_;
  WorkSource& source_ NEREID_GUARDED_BY(mutex_);
  base::ThreadReaper& reaper_;
  base::Watchdog* const watchdog_;  // null: none
  const InstancePoolOptions options_;
  const InlinePolicy policy_;

  // Written under the lock, but by GiveUpWaiting. It says nothing of other data.
  std::atomic<Meeting> meeting_{Meeting::kNone};
  mutable base::Mutex mutex_;
  uint32_t told_executions_ NEREID_GUARDED_BY(mutex_) = 0;  // so many more are told to reactors
  InstanceRoster roster_ NEREID_GUARDED_BY(mutex_);
  base::CondVar left_;  // signalled when something that is leaving came closer to its end
  base::CondVar idle_;  // signalled when the set may have become idle, or a thread falls asleep
  size_t idle_waiters_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t expected_rounds_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t busy_count_ NEREID_GUARDED_BY(mutex_) = 0;
  bool has_claims_ NEREID_GUARDED_BY(mutex_) = false;  // the rate of an instance is limited
  bool is_stopping_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  ThreadShortage shortage_;  // destroyed first, because it calls WakeForWork
};

}  // namespace nereid::schedule
