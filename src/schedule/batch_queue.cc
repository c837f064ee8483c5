// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_queue.h"

#include <algorithm>

namespace nereid::schedule {
namespace {

// The largest number of microseconds that fits the clock as nanoseconds.
constexpr uint64_t kMaxUs = UINT64_C(9'000'000'000'000'000);

}  // namespace

BatchPolicy BatchPolicy::FromConfig(const config::ModelConfig& config) {
  BatchPolicy policy;
  policy.max_batch_size = static_cast<size_t>(std::max(config.max_batch_size, 1));
  const config::DynamicBatching* dynamic = config.dynamic_batching();
  if (dynamic == nullptr) return policy;
  policy.is_dynamic = true;
  for (const int32_t size : dynamic->preferred_batch_size) {
    if (size > 0) policy.preferred_batch_sizes.push_back(static_cast<size_t>(size));
  }
  std::ranges::sort(policy.preferred_batch_sizes);
  policy.max_queue_delay =
      std::chrono::microseconds(std::min(dynamic->max_queue_delay_microseconds, kMaxUs));
  policy.preserves_order = dynamic->preserve_ordering;
  policy.priority_levels = dynamic->priority_levels;
  policy.default_priority_level = dynamic->default_priority_level;
  policy.default_queue_policy = dynamic->default_queue_policy.value_or(config::QueuePolicy());
  policy.priority_queue_policy = dynamic->priority_queue_policy;
  return policy;
}

// Visits requests in the order of execution: highest priority first; within a level, requests in
// time before those that lost their turn.
class BatchQueue::Walk {
 public:
  explicit Walk(std::map<uint64_t, Level>& levels) : levels_(levels), level_(levels.begin()) {
    Enter();
  }
  core::Request* request() const { return request_; }
  void Next() {
    request_ = request_->next;
    if (request_ == nullptr) Continue();
  }

 private:
  void Enter() {
    if (level_ == levels_.end()) return;
    is_delayed_ = false;
    request_ = level_->second.waiting.front();
    if (request_ == nullptr) Continue();
  }
  void Continue() {
    while (request_ == nullptr && level_ != levels_.end()) {
      if (!is_delayed_) {
        is_delayed_ = true;
        request_ = level_->second.delayed.front();
        continue;
      }
      ++level_;
      if (level_ == levels_.end()) return;
      is_delayed_ = false;
      request_ = level_->second.waiting.front();
    }
  }

  std::map<uint64_t, Level>& levels_;
  std::map<uint64_t, Level>::iterator level_;
  core::Request* request_ = nullptr;
  bool is_delayed_ = false;
};

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
      matcher_(model),
      hold_until_(policy_.hold_until_waiting) {
  if (policy_.priority_levels == 0) LevelAt(0);
}

uint64_t BatchQueue::PriorityOf(const core::Request& request) const {
  if (policy_.priority_levels == 0) return 0;
  const bool is_valid = request.priority > 0 && request.priority <= policy_.priority_levels;
  return is_valid ? request.priority : policy_.default_priority_level;
}

// There may be 2^64 levels, so only those with requests exist.
BatchQueue::Level& BatchQueue::LevelAt(uint64_t priority) {
  const auto found = levels_.find(priority);
  if (found != levels_.end()) return found->second;
  const auto own = policy_.priority_queue_policy.find(priority);
  Level& level = levels_[priority];
  level.policy =
      own == policy_.priority_queue_policy.end() ? &policy_.default_queue_policy : &own->second;
  return level;
}

void BatchQueue::SetExpiry(core::Request& request, const config::QueuePolicy& policy) {
  uint64_t timeout_us = policy.default_timeout_microseconds;
  // A client may shorten the wait, but not lengthen it.
  if (policy.allow_timeout_override && request.timeout_us != 0) {
    timeout_us = std::min(timeout_us, request.timeout_us);
  }
  request.expires_at_ns = 0;
  if (timeout_us == 0) return;
  request.expires_at_ns = request.times.queue_start_ns + std::min(timeout_us, kMaxUs) * 1000;
  expiries_.insert({request.expires_at_ns, &request});
}

bool BatchQueue::Push(core::RequestPtr& request) {
  Level& level = LevelAt(PriorityOf(*request));
  if (level.policy->max_queue_size != 0 && level.size() >= level.policy->max_queue_size) {
    return false;
  }
  SetExpiry(*request, *level.policy);
  level.waiting.PushBack(std::move(request));
  ++size_;
  return true;
}

core::RequestPtr BatchQueue::PopFront() {
  core::Request* const first = Walk(levels_).request();
  return first == nullptr ? nullptr : Remove(*first);
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
  const bool was_waiting = list != &expired_;
  core::RequestPtr removed = list->Unlink(request);
  if (!was_waiting) return removed;
  --size_;
  if (policy_.priority_levels != 0) {
    const auto level = levels_.find(PriorityOf(*removed));
    if (level != levels_.end() && level->second.size() == 0) levels_.erase(level);
  }
  return removed;
}

void BatchQueue::ApplyTimeouts(uint64_t now_ns) {
  while (!expiries_.empty() && expiries_.begin()->first <= now_ns) {
    core::Request& request = *expiries_.begin()->second;
    Level& level = LevelAt(PriorityOf(request));
    if (level.policy->timeout_action == config::QueuePolicy::TimeoutAction::kDelay) {
      expiries_.erase(expiries_.begin());
      request.expires_at_ns = 0;
      level.delayed.PushBack(level.waiting.Unlink(request));
    } else {
      expired_.PushBack(Remove(request));
    }
  }
}

core::RequestPtr BatchQueue::PopExpired(uint64_t now_ns) {
  ApplyTimeouts(now_ns);
  return expired_.PopFront();
}

std::optional<uint64_t> BatchQueue::NextExpiry() const {
  if (!expired_.empty()) return 0;
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
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
  if (size_ == 0) return {};
  if (hold_until_ > 0) {
    if (size_ < hold_until_ && !is_draining_) return {};
    hold_until_ = 0;
  }
  if (!policy_.is_dynamic) return {.request_count = 1};
  if (strategy_ != nullptr) strategy_->Begin();
  Pending pending;
  for (Walk walk(levels_); walk.request() != nullptr; walk.Next()) {
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
