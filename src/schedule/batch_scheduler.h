// SPDX-License-Identifier: Apache-2.0
// The default scheduler and the dynamic batcher: a queue with its policies in front of the
// instances of one model. Expired requests are completed at once, even if all instances are busy.
#pragma once

#include <memory>
#include <vector>

#include "base/timers.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "schedule/batch_queue.h"
#include "schedule/instance_change.h"
#include "schedule/instance_pool.h"
#include "schedule/instance_pool_options.h"
#include "schedule/ordered_responses.h"
#include "schedule/overload_guard.h"

namespace nereid::schedule {

// The arguments of a scheduler without sequences.
struct BatchSchedulerOptions {
  BatchPolicy policy = {};
  // The model's own batching rule; null: none.
  std::unique_ptr<core::BatchStrategy> strategy = nullptr;
  // Whether a limit of requests in flight follows the model's speed (ConcurrencyLimit).
  bool adapts_concurrency = false;
  InstancePoolOptions pool = {};
};

// Thread-safe.
class BatchScheduler final : public core::Scheduler, public InstanceHost {
 public:
  // Starts, initialises and warms up the instances; returns the first failure. `model` and
  // everything in `context` outlive the scheduler.
  static base::Result<std::unique_ptr<BatchScheduler>> Create(core::Model& model,
                                                              SchedulerContext context,
                                                              BatchSchedulerOptions options,
                                                              std::vector<NewInstance> instances);
  // Completes the requests that still wait and joins the threads. Not from one of them.
  ~BatchScheduler() override;

  void Enqueue(core::RequestPtr request) override;
  void OnCancelled(core::Request& request) override;
  core::SchedulerLoad ReadLoad() override;
  bool Stop(base::TimePoint deadline) override;
  base::Status ChangeInstances(InstanceChange change) override {
    return pool_.Change(std::move(change));
  }

  // Waits until nothing is queued or running and threads sleep. Returns false at `deadline`.
  bool WaitUntilIdleForTest(base::TimePoint deadline) {
    return pool_.WaitUntilAsleepForTest(deadline);
  }

 private:
  // The queue as the pool sees it: requests that leave it join the line of responses, and how long
  // they take is noted.
  class Source final : public WorkSource {
   public:
    Source(BatchQueue& queue, OverloadGuard& guard, OrderedResponses* order)
        : queue_(queue), guard_(guard), order_(order) {}
    bool HasWaiting() const override { return queue_.HasWaiting(); }
    BatchDecision Decide(size_t instance, uint64_t now_ns) override {
      return queue_.Decide(instance, now_ns);
    }
    void Take(size_t instance, const BatchDecision& decision,
              std::vector<core::RequestPtr>& batch) override;
    void OnExecuted(size_t instance) override { guard_.NoteExecuted(instance, queue_); }
    void AddInstance(size_t instance, uint64_t /*now_ns*/) override {
      guard_.AddInstance(instance);
    }
    void RetireInstance(size_t instance) override { guard_.RetireInstance(instance); }

   private:
    BatchQueue& queue_;
    OverloadGuard& guard_;
    OrderedResponses* const order_;  // null: responses are sent as they come
  };

  BatchScheduler(core::Model& model, SchedulerContext context, BatchSchedulerOptions options);

  // What becomes of an arriving request.
  struct Arrived {
    enum class As { kQueued, kStopping, kCancelled, kQueueFull, kRefused } as = As::kQueued;
    RefusedAtDoor refused = {};  // as kRefused
    // A request of another caller that had to leave the full queue; usually null.
    core::RequestPtr displaced = nullptr;
  };

  static InstancePoolOptions PoolOptions(const BatchSchedulerOptions& options);
  // Moves `request` into the queue, or leaves it alone.
  Arrived Admit(core::RequestPtr& request, uint64_t now_ns) NEREID_REQUIRES(pool_.mutex());
  void RefuseArrived(core::RequestPtr request, const Arrived& arrived)
      NEREID_EXCLUDES(pool_.mutex());
  // Completes a request whose deadline has passed.
  void RefuseExpired(core::RequestPtr request, core::FailureReason reason)
      NEREID_EXCLUDES(pool_.mutex());
  // Completes expired requests, or moves them out of the line, and re-evaluates the rest.
  void ApplyTimeouts();
  // Sets the timer for the next expiry.
  void WatchExpiry() NEREID_REQUIRES(pool_.mutex());

  core::Model& model_;
  const BatchSchedulerOptions options_;
  OrderedResponses order_;
  BatchQueue queue_ NEREID_GUARDED_BY(pool_.mutex());
  OverloadGuard guard_ NEREID_GUARDED_BY(pool_.mutex());
  Source source_ NEREID_GUARDED_BY(pool_.mutex());
  InstancePool pool_;
  uint64_t timer_at_ns_ NEREID_GUARDED_BY(pool_.mutex()) = 0;  // 0: not set
  base::Timer expiry_timer_;
};

}  // namespace nereid::schedule
