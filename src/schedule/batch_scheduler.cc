// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_scheduler.h"

#include "core/response.h"
#include "schedule/refuse.h"

namespace nereid::schedule {

void BatchScheduler::Source::Take(size_t instance, const BatchDecision& decision,
                                  std::vector<core::RequestPtr>& batch) {
  const size_t before = batch.size();
  queue_.Take(instance, decision, batch);
  if (order_ == nullptr) return;
  for (size_t i = before; i < batch.size(); ++i) order_->Join(*batch[i]);
}

InstancePoolOptions BatchScheduler::PoolOptions(const BatchSchedulerOptions& options) {
  InstancePoolOptions pool = options.pool;
  // A delay needs a thread that can sleep.
  if (options.policy.max_queue_delay.count() != 0) pool.inline_budget = base::nanoseconds(0);
  pool.collects_rounds = options.policy.is_dynamic;
  return pool;
}

BatchScheduler::BatchScheduler(core::Model& model, SchedulerContext context,
                               BatchSchedulerOptions options)
    : model_(model),
      options_(std::move(options)),
      queue_(model, options_.policy, options_.strategy.get()),
      source_(queue_, options_.policy.preserves_order ? &order_ : nullptr),
      pool_(model, source_, context, PoolOptions(options_)),
      expiry_timer_(context.timers, [this] { ApplyTimeouts(); }) {}

base::Result<std::unique_ptr<BatchScheduler>> BatchScheduler::Create(
    core::Model& model, SchedulerContext context, BatchSchedulerOptions options,
    std::vector<NewInstance> instances) {
  std::unique_ptr<BatchScheduler> scheduler(new BatchScheduler(model, context, std::move(options)));
  NEREID_RETURN_IF_ERROR(scheduler->pool_.Start(std::move(instances)));
  return scheduler;
}

BatchScheduler::~BatchScheduler() {
  pool_.End();
  while (true) {
    core::RequestPtr request;
    {
      base::MutexLock lock(pool_.mutex());
      request = queue_.PopFront();
      if (request == nullptr) request = queue_.PopExpired(0);
    }
    if (request == nullptr) break;
    model_.statistics().AddPending(-1);
    Refuse(std::move(request), core::FailureReason::kOther, StoppingError());
  }
}

void BatchScheduler::Enqueue(core::RequestPtr request) {
  const uint64_t now_ns = request->MarkQueued();
  InstancePool::Arrival arrival(*request);
  bool is_stopping = false;
  bool is_cancelled = false;
  {
    base::MutexLock lock(pool_.mutex());
    is_stopping = pool_.is_stopping();
    // A thread that cancelled it before it was in the queue does not try again.
    is_cancelled = request->is_cancelled();
    if (!is_stopping && !is_cancelled && queue_.Push(request)) {
      model_.statistics().AddPending(1);
      WatchExpiry();
      pool_.Announce(arrival, now_ns);
    }
  }
  if (request != nullptr) [[unlikely]] {
    if (is_stopping)
      return Refuse(std::move(request), core::FailureReason::kOther, StoppingError());
    if (is_cancelled) {
      return Refuse(std::move(request), core::FailureReason::kCancelled, CancelledError());
    }
    return Refuse(std::move(request), core::FailureReason::kRejected, QueueFullError());
  }
  pool_.Finish(arrival);
}

void BatchScheduler::OnCancelled(core::Request& request) {
  core::RequestPtr removed;
  {
    base::MutexLock lock(pool_.mutex());
    removed = queue_.Remove(request);
    if (removed != nullptr) {
      model_.statistics().AddPending(-1);
      pool_.NoteChange();
    }
  }
  if (removed != nullptr) {
    Refuse(std::move(removed), core::FailureReason::kCancelled, CancelledError());
  }
}

void BatchScheduler::WatchExpiry() {
  // At worst this timer fires once in vain, because a request that runs in time does not reset it.
  if (const auto next = queue_.NextExpiry()) expiry_timer_.ArmAt(*next);
}

void BatchScheduler::ApplyTimeouts() {
  std::vector<core::RequestPtr> expired;
  {
    base::MutexLock lock(pool_.mutex());
    const uint64_t now_ns = base::NowNs();
    while (core::RequestPtr request = queue_.PopExpired(now_ns)) {
      expired.push_back(std::move(request));
    }
    model_.statistics().AddPending(-static_cast<int64_t>(expired.size()));
    WatchExpiry();
    // Also needed if no request has left: one that lost its turn makes another the first.
    pool_.NoteChange();
  }
  for (core::RequestPtr& request : expired) {
    RefusePlainly(std::move(request), core::FailureReason::kRejected, TimeoutError());
  }
}

bool BatchScheduler::Stop(base::TimePoint deadline) {
  {
    base::MutexLock lock(pool_.mutex());
    queue_.StopWaiting();
  }
  return pool_.Stop(deadline);
}

}  // namespace nereid::schedule
