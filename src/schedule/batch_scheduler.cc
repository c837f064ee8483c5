// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_scheduler.h"

#include "core/response.h"
#include "schedule/refuse.h"

namespace nereid::schedule {

void BatchScheduler::Source::Take(size_t instance, const BatchDecision& decision,
                                  std::vector<core::RequestPtr>& batch) {
  const size_t before = batch.size();
  queue_.Take(instance, decision, batch);
  guard_.NoteTaken(instance, std::span(batch).subspan(before), queue_);
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
      guard_(options_.policy.is_dynamic ? options_.policy.max_batch_size : 0,
             options_.adapts_concurrency),
      source_(queue_, guard_, options_.policy.preserves_order ? &order_ : nullptr),
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

BatchScheduler::Arrived BatchScheduler::Admit(core::RequestPtr& request, uint64_t now_ns) {
  using As = Arrived::As;
  if (pool_.is_stopping()) return {.as = As::kStopping};
  // A thread that cancelled it before it was in the queue does not try again.
  if (request->is_cancelled()) return {.as = As::kCancelled};
  if (const auto refused = guard_.Check(*request, queue_, now_ns)) {
    return {.as = As::kRefused, .refused = *refused};
  }
  if (queue_.Push(request)) return {};
  Arrived arrived{.displaced = queue_.MakeRoom(*request)};
  if (arrived.displaced == nullptr || !queue_.Push(request)) arrived.as = As::kQueueFull;
  return arrived;
}

void BatchScheduler::Enqueue(core::RequestPtr request) {
  const uint64_t now_ns = request->MarkQueued();
  InstancePool::Arrival arrival(*request);
  Arrived arrived;
  {
    pool_.LockFor(arrival);
    base::MutexLock lock(pool_.mutex(), std::adopt_lock);
    const bool joins = !pool_.is_stopping() && !request->is_cancelled() &&
                       !guard_.Concerns(*request) && queue_.Push(request);
    if (!joins) [[unlikely]]
      arrived = Admit(request, now_ns);
    if (request == nullptr) [[likely]] {
      model_.statistics().AddPending(arrived.displaced == nullptr ? 1 : 0);
      WatchExpiry();
      pool_.Announce(arrival, now_ns);
    }
  }
  if (arrived.displaced != nullptr) [[unlikely]] {
    Refuse(std::move(arrived.displaced), core::FailureReason::kRejected, QueueFullError());
  }
  if (request != nullptr) [[unlikely]]
    return RefuseArrived(std::move(request), arrived);
  pool_.Finish(arrival);
}

void BatchScheduler::RefuseArrived(core::RequestPtr request, const Arrived& arrived) {
  using As = Arrived::As;
  using core::FailureReason;
  switch (arrived.as) {
    case As::kStopping:
      return Refuse(std::move(request), FailureReason::kOther, StoppingError());
    case As::kCancelled:
      return Refuse(std::move(request), FailureReason::kCancelled, CancelledError());
    case As::kRefused:
      model_.statistics().RecordRefusal(arrived.refused.reason);
      return Refuse(std::move(request), FailureReason::kRejected,
                    DoorError(arrived.refused, model_));
    case As::kQueueFull:
    case As::kQueued:
      break;
  }
  Refuse(std::move(request), FailureReason::kRejected, QueueFullError());
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
  if (removed == nullptr) return;
  // A frontend that keeps the deadline itself cancels the request when it has passed.
  if (removed->deadline_ns != 0 && removed->deadline_ns <= base::NowNs()) {
    return RefuseExpired(std::move(removed), core::FailureReason::kCancelled);
  }
  Refuse(std::move(removed), core::FailureReason::kCancelled, CancelledError());
}

void BatchScheduler::RefuseExpired(core::RequestPtr request, core::FailureReason reason) {
  model_.statistics().RecordRefusal(core::Refusal::kExpired);
  Refuse(std::move(request), reason, DeadlineError(model_));
}

// The timer is not set to a later time when its reason has gone: it fires once in vain, which costs
// less than setting it for each request.
void BatchScheduler::WatchExpiry() {
  const std::optional<uint64_t> next = queue_.NextExpiry();
  if (!next || (timer_at_ns_ != 0 && timer_at_ns_ <= *next)) return;
  timer_at_ns_ = *next;
  expiry_timer_.ArmAt(*next);
}

void BatchScheduler::ApplyTimeouts() {
  std::vector<core::RequestPtr> expired;
  {
    base::MutexLock lock(pool_.mutex());
    timer_at_ns_ = 0;
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
    if (request->expires_at_ns == request->deadline_ns) {
      RefuseExpired(std::move(request), core::FailureReason::kRejected);
    } else {
      RefusePlainly(std::move(request), core::FailureReason::kRejected, TimeoutError());
    }
  }
}

core::SchedulerLoad BatchScheduler::ReadLoad() {
  base::MutexLock lock(pool_.mutex());
  return {.oldest_waiting_ns = queue_.HasWaiting() ? queue_.OldestNs() : 0,
          .instance_count = pool_.instance_count()};
}

bool BatchScheduler::Stop(base::TimePoint deadline) {
  {
    base::MutexLock lock(pool_.mutex());
    queue_.StopWaiting();
  }
  return pool_.Stop(deadline);
}

}  // namespace nereid::schedule
