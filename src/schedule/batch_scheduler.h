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

namespace nereid::schedule {

// The arguments of a scheduler without sequences.
struct BatchSchedulerOptions {
  BatchPolicy policy = {};
  // The model's own batching rule; null: none.
  std::unique_ptr<core::BatchStrategy> strategy = nullptr;
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
  bool Stop(base::TimePoint deadline) override;
  base::Status ChangeInstances(InstanceChange change) override {
    return pool_.Change(std::move(change));
  }

  // Waits until nothing is queued or running and threads sleep. Returns false at `deadline`.
  bool WaitUntilIdleForTest(base::TimePoint deadline) {
    return pool_.WaitUntilAsleepForTest(deadline);
  }

 private:
  // The queue as the pool sees it: requests that leave it join the line of responses.
  class Source final : public WorkSource {
   public:
    Source(BatchQueue& queue, OrderedResponses* order) : queue_(queue), order_(order) {}
    bool HasWaiting() const override { return queue_.HasWaiting(); }
    BatchDecision Decide(size_t instance, uint64_t now_ns) override {
      return queue_.Decide(instance, now_ns);
    }
    void Take(size_t instance, const BatchDecision& decision,
              std::vector<core::RequestPtr>& batch) override;

   private:
    BatchQueue& queue_;
    OrderedResponses* const order_;  // null: responses are sent as they come
  };

  BatchScheduler(core::Model& model, SchedulerContext context, BatchSchedulerOptions options);

  static InstancePoolOptions PoolOptions(const BatchSchedulerOptions& options);
  // Completes expired requests, or moves them out of the line, and re-evaluates the rest.
  void ApplyTimeouts();
  // Sets the timer for the next expiry.
  void WatchExpiry() NEREID_REQUIRES(pool_.mutex());

  core::Model& model_;
  const BatchSchedulerOptions options_;
  OrderedResponses order_;
  BatchQueue queue_ NEREID_GUARDED_BY(pool_.mutex());
  Source source_ NEREID_GUARDED_BY(pool_.mutex());
  InstancePool pool_;
  base::Timer expiry_timer_;
};

}  // namespace nereid::schedule
