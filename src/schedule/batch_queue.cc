// SPDX-License-Identifier: Apache-2.0
#include "schedule/batch_queue.h"

#include <algorithm>

namespace nereid::schedule {
namespace {

bool HasWildcard(const core::ModelTensor& tensor) {
  return std::ranges::any_of(tensor.dims.dims(), [](int64_t dim) { return dim < 0; });
}

// Requests of a model whose inputs all have fixed shapes and must all be there always fit together.
bool NeedsComparison(const core::Model& model) {
  return std::ranges::any_of(model.inputs(), [](const core::ModelTensor& input) {
    return input.is_optional || (HasWildcard(input) && !input.allow_ragged_batch);
  });
}

bool SameItemShape(const tensor::Shape& a, const tensor::Shape& b) {
  // The first dimension is the batch.
  return a.rank() == b.rank() && std::equal(a.data() + 1, a.data() + a.rank(), b.data() + 1);
}

}  // namespace

BatchPolicy BatchPolicy::FromConfig(const config::ModelConfig& config) {
  BatchPolicy policy;
  policy.max_batch_size = static_cast<size_t>(std::max(config.max_batch_size, 1));
  const config::DynamicBatching* dynamic = config.dynamic_batching();
  if (dynamic == nullptr || config.max_batch_size < 1) return policy;
  policy.is_dynamic = true;
  for (const int32_t size : dynamic->preferred_batch_size) {
    if (size > 0) policy.preferred_batch_sizes.push_back(static_cast<size_t>(size));
  }
  std::ranges::sort(policy.preferred_batch_sizes);
  constexpr uint64_t kMaxDelayUs = UINT64_C(9'000'000'000'000'000);  // fits nanoseconds
  policy.max_queue_delay = std::chrono::microseconds(
      std::min(dynamic->max_queue_delay_microseconds, kMaxDelayUs));
  return policy;
}

BatchQueue::BatchQueue(const core::Model& model, BatchPolicy policy)
    : model_(model),
      policy_(std::move(policy)),
      max_preferred_(policy_.preferred_batch_sizes.empty() ? policy_.max_batch_size
                                                           : policy_.preferred_batch_sizes.back()),
      compares_inputs_(NeedsComparison(model)) {}

BatchQueue::~BatchQueue() {
  while (PopFront()) {
  }
}

void BatchQueue::Push(core::RequestPtr request) {
  core::Request* const added = request.release();
  added->next = nullptr;
  added->previous = tail_;
  added->is_queued = true;
  (tail_ != nullptr ? tail_->next : head_) = added;
  tail_ = added;
  ++size_;
}

core::RequestPtr BatchQueue::PopFront() {
  return head_ == nullptr ? nullptr : Remove(*head_);
}

core::RequestPtr BatchQueue::Remove(core::Request& request) {
  if (!request.is_queued) return nullptr;
  (request.previous != nullptr ? request.previous->next : head_) = request.next;
  (request.next != nullptr ? request.next->previous : tail_) = request.previous;
  request.next = nullptr;
  request.previous = nullptr;
  request.is_queued = false;
  --size_;
  return core::RequestPtr(&request);
}

bool BatchQueue::CanShareBatch(const core::Request& first, const core::Request& other) const {
  if (!compares_inputs_) return true;
  // The engine keeps inputs in the model's order, so equal sets line up.
  if (first.inputs.size() != other.inputs.size()) return false;
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const core::RequestInput& a = first.inputs[i];
    const core::RequestInput& b = other.inputs[i];
    if (a.model_index != b.model_index) return false;
    const core::ModelTensor& input = model_.inputs()[a.model_index];
    if (!input.allow_ragged_batch && !SameItemShape(a.shape, b.shape)) return false;
  }
  return true;
}

// The walk takes requests from the front while they fit together, remembering the last point at which
// their batch was a preferred size (or the point before it would outgrow the largest). Such a point is
// run at once; so is a walk that cannot grow. Otherwise the oldest request decides: until its delay is
// over, wait. docs/scheduling.md states the rule for users.
BatchDecision BatchQueue::Decide(uint64_t now_ns) const {
  if (head_ == nullptr) return {};
  if (!policy_.is_dynamic) return {.request_count = 1};
  const auto delay_ns = static_cast<uint64_t>(policy_.max_queue_delay.count());
  size_t batch = 0;
  size_t count = 0;
  size_t best_count = 0;
  bool is_closed = false;
  for (const core::Request* request = head_; request != nullptr; request = request->next) {
    const size_t extra = request->batch_count();
    if (count > 0) {
      if (batch + extra > max_preferred_ && best_count == 0) best_count = count;
      if (batch + extra > policy_.max_batch_size || !CanShareBatch(*head_, *request)) {
        is_closed = true;
        break;
      }
    }
    batch += extra;
    ++count;
    if (std::ranges::binary_search(policy_.preferred_batch_sizes, batch)) best_count = count;
  }
  const uint64_t oldest_ns = head_->times.queue_start_ns;
  const uint64_t age_ns = now_ns > oldest_ns ? now_ns - oldest_ns : 0;
  const bool is_overdue = delay_ns > 0 && age_ns >= delay_ns;
  if (best_count > 0 && !is_overdue) return {.request_count = best_count};
  if (is_closed || batch >= max_preferred_ || delay_ns == 0 || is_overdue) {
    return {.request_count = count};
  }
  return {.look_again_at_ns = oldest_ns + delay_ns};
}

}  // namespace nereid::schedule
