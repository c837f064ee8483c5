// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_queue.h"

#include <algorithm>

namespace nereid::schedule {

struct BatchQueue::Pending {
  core::Request* first = nullptr;
  size_t batch = 0;  // the sum of the requests' batch sizes
  size_t count = 0;
  size_t best_count = 0;  // the last count at which it was good to stop
  core::BatchClosed best_reason = core::BatchClosed::kPreferred;
  uint64_t oldest_ns = UINT64_MAX;
  std::optional<core::BatchClosed> closed;
};

BatchQueue::BatchQueue(const core::Model& model, BatchPolicy policy, core::BatchStrategy* strategy)
    : policy_(std::move(policy)),
      strategy_(strategy),
      max_preferred_(policy_.preferred_batch_sizes.empty() ? policy_.max_batch_size
                                                           : policy_.preferred_batch_sizes.back()),
      has_timeouts_(policy_.HasTimeouts()),
      matcher_(model),
      lanes_(policy_),
      hold_until_(policy_.hold_until_waiting) {}

uint64_t BatchQueue::OwnTimeoutNs(const core::Request& request) const {
  if (request.timeout_us == 0) return 0;
  const config::QueuePolicy& policy = policy_.PolicyAt(policy_.PriorityOf(request));
  const bool is_heard = policy.allow_timeout_override &&
                        policy.timeout_action == config::QueuePolicy::TimeoutAction::kReject &&
                        request.timeout_us < policy.default_timeout_microseconds;
  return is_heard ? std::min(request.timeout_us, kMaxQueueUs) * 1000 : 0;
}

void BatchQueue::ComputeExpiry(core::Request& request) {
  const config::QueuePolicy& policy = policy_.PolicyAt(policy_.PriorityOf(request));
  uint64_t timeout_us = policy.default_timeout_microseconds;
  // A client may shorten the wait, but not lengthen it.
  if (policy.allow_timeout_override && request.timeout_us != 0) {
    timeout_us = std::min(timeout_us, request.timeout_us);
  }
  uint64_t at_ns = request.deadline_ns;
  if (timeout_us != 0) {
    const uint64_t turn_ns =
        request.times.queue_start_ns + std::min(timeout_us, kMaxQueueUs) * 1000;
    at_ns = at_ns == 0 ? turn_ns : std::min(at_ns, turn_ns);
  }
  ExpireAt(request, at_ns);
}

void BatchQueue::ExpireAt(core::Request& request, uint64_t at_ns) {
  request.expires_at_ns = at_ns;
  // Most requests of a model have the same time, so this one comes last.
  if (at_ns != 0) expiries_.emplace_hint(expiries_.end(), at_ns, &request);
}

bool BatchQueue::Push(core::RequestPtr& request) {
  const uint64_t priority = policy_.PriorityOf(*request);
  const size_t most = policy_.PolicyAt(priority).max_queue_size;
  if (most != 0 && lanes_.CountAt(priority) >= most) return false;
  SetExpiry(*request);
  lanes_.Push(std::move(request));
  return true;
}

core::RequestPtr BatchQueue::MakeRoom(const core::Request& request) {
  core::Request* const newest = lanes_.FindSurplus(request);
  return newest == nullptr ? nullptr : Remove(*newest);
}

core::RequestPtr BatchQueue::PopFront() {
  core::RequestPtr first = lanes_.PopFront();
  if (first != nullptr && first->expires_at_ns != 0) ForgetExpiry(*first);
  return first;
}

void BatchQueue::ForgetExpiry(core::Request& request) {
  auto [at, end] = expiries_.equal_range(request.expires_at_ns);
  while (at != end && at->second != &request) ++at;
  if (at != end) expiries_.erase(at);
}

core::RequestPtr BatchQueue::Remove(core::Request& request) {
  RequestList* const list = RequestList::Of(request);
  if (list == nullptr) return nullptr;
  if (request.expires_at_ns != 0) ForgetExpiry(request);
  return list == &expired_ ? expired_.Unlink(request) : lanes_.Remove(request);
}

void BatchQueue::ApplyTimeouts(uint64_t now_ns) {
  using Action = config::QueuePolicy::TimeoutAction;
  while (!expiries_.empty() && expiries_.begin()->first <= now_ns) {
    core::Request& request = *expiries_.begin()->second;
    const bool is_over = request.deadline_ns != 0 && request.deadline_ns <= now_ns;
    if (!is_over &&
        policy_.PolicyAt(policy_.PriorityOf(request)).timeout_action == Action::kDelay) {
      expiries_.erase(expiries_.begin());
      lanes_.Delay(request);
      ExpireAt(request, request.deadline_ns);
    } else {
      expired_.PushBack(Remove(request));
    }
  }
}

core::RequestPtr BatchQueue::PopExpired(uint64_t now_ns) {
  ApplyTimeouts(now_ns);
  return expired_.PopFront();
}

// Returns whether the pending batch can grow by `request`; if not, closes it.
bool BatchQueue::Joins(Pending& pending, core::Request& request) {
  const size_t grown = pending.batch + request.batch_count();
  if (pending.count > 0) {
    // Beyond the largest preferred size the batch runs only after its delay.
    if (grown > max_preferred_ && pending.best_count == 0) {
      pending.best_count = pending.count;
      pending.best_reason = core::BatchClosed::kFull;
    }
    if (grown > policy_.max_batch_size) {
      pending.closed = core::BatchClosed::kFull;
      return false;
    }
    if (!matcher_.Match(*pending.first, request)) {
      pending.closed = core::BatchClosed::kIncompatible;
      return false;
    }
  }
  if (strategy_ != nullptr && !strategy_->Includes(request) && pending.count > 0) {
    pending.closed = core::BatchClosed::kIncompatible;
    return false;
  }
  return true;
}

// The walk takes requests from the front while they fit together, and remembers the last count at
// which their batch had a preferred size (or the count before it would exceed the largest). Such a
// batch runs at once, and so does one that cannot grow. Otherwise it waits until the delay of the
// oldest request is over.
BatchDecision BatchQueue::Decide(size_t /*instance*/, uint64_t now_ns) {
  if (!expiries_.empty()) ApplyTimeouts(now_ns);
  if (size() == 0) return {};
  if (hold_until_ > 0) {
    if (size() < hold_until_ && !is_draining_) return {};
    hold_until_ = 0;
  }
  if (!policy_.is_dynamic) return {.request_count = 1};
  if (strategy_ != nullptr) strategy_->Begin();
  Pending pending;
  for (FairLanes::Walk walk(lanes_); walk.request() != nullptr; walk.Next()) {
    core::Request& request = *walk.request();
    if (!Joins(pending, request)) break;
    if (pending.first == nullptr) pending.first = &request;
    pending.batch += request.batch_count();
    ++pending.count;
    pending.oldest_ns = std::min(pending.oldest_ns, request.times.queue_start_ns);
    if (std::ranges::binary_search(policy_.preferred_batch_sizes, pending.batch)) {
      pending.best_count = pending.count;
      pending.best_reason = pending.batch == policy_.max_batch_size ? core::BatchClosed::kFull
                                                                    : core::BatchClosed::kPreferred;
    }
  }
  const auto delay_ns = static_cast<uint64_t>(policy_.max_queue_delay.count());
  const uint64_t age_ns = now_ns > pending.oldest_ns ? now_ns - pending.oldest_ns : 0;
  const bool is_overdue = delay_ns > 0 && (age_ns >= delay_ns || is_draining_);
  if (pending.best_count > 0 && !is_overdue) {
    return {.request_count = pending.best_count, .reason = pending.best_reason};
  }
  if (pending.closed) return {.request_count = pending.count, .reason = *pending.closed};
  if (pending.batch >= max_preferred_) {
    return {.request_count = pending.count, .reason = core::BatchClosed::kFull};
  }
  if (delay_ns == 0) return {.request_count = pending.count};
  if (is_overdue) return {.request_count = pending.count, .reason = core::BatchClosed::kDelay};
  return {.look_again_at_ns = pending.oldest_ns + delay_ns};
}

void BatchQueue::Take(size_t /*instance*/, const BatchDecision& decision,
                      std::vector<core::RequestPtr>& batch) {
  for (size_t i = 0; i < decision.request_count; ++i) batch.push_back(PopFront());
}

}  // namespace nereid::schedule
