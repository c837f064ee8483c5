// SPDX-License-Identifier: Apache-2.0
#include "schedule/oldest_source.h"

#include <algorithm>

namespace nereid::schedule {

OldestSource::OldestSource(SequenceSourceOptions options)
    : SequenceSource(std::move(options)),
      max_preferred_(plan_.preferred_batch_sizes().empty() ? plan_.max_batch_size()
                                                           : plan_.preferred_batch_sizes().back()) {
  OldestSource::Grow();
}

void OldestSource::Grow() {
  if (!plan_.preserves_ordering()) return;
  while (orders_.size() < table_.instance_count()) {
    orders_.push_back(std::make_unique<OrderedResponses>());
  }
}

// The rule of the dynamic batcher for requests of size one: the largest preferred size that can be
// reached runs at once; so does a batch that cannot grow, and one whose first request has waited
// its delay.
BatchDecision OldestSource::Decide(size_t instance, uint64_t now_ns) {
  const Sequence* const first = table_.first_ready(instance);
  if (first == nullptr || IsHolding(table_.ready_count())) return {};
  const std::vector<size_t>& preferred = plan_.preferred_batch_sizes();
  size_t count = 0;
  size_t best = 0;
  bool is_mismatch = false;
  for (const Sequence* sequence = first; sequence != nullptr && count < plan_.max_batch_size();
       sequence = sequence->next_ready()) {
    if (count > 0 && !matcher_.Match(*first->front(), *sequence->front())) {
      is_mismatch = true;
      break;
    }
    ++count;
    if (std::ranges::binary_search(preferred, count)) best = count;
  }
  const uint64_t delay_ns = plan_.max_queue_delay_ns();
  const uint64_t since_ns = first->ready_since_ns();
  const bool is_overdue = delay_ns > 0 && now_ns >= since_ns && now_ns - since_ns >= delay_ns;
  if (best > 0 && !is_overdue) {
    return {.request_count = best, .reason = core::BatchClosed::kPreferred};
  }
  if (count == plan_.max_batch_size()) {
    return {.request_count = count, .reason = core::BatchClosed::kFull};
  }
  if (is_mismatch) return {.request_count = count, .reason = core::BatchClosed::kIncompatible};
  if (is_overdue) return {.request_count = count, .reason = core::BatchClosed::kDelay};
  if (delay_ns == 0 || count >= max_preferred_) return {.request_count = count};
  return {.look_again_at_ns = since_ns + delay_ns};
}

void OldestSource::Take(size_t instance, const BatchDecision& decision,
                        std::vector<core::RequestPtr>& batch) {
  for (size_t i = 0; i < decision.request_count; ++i) {
    batch.push_back(Dispatch(*table_.first_ready(instance)));
    core::Request& request = *batch.back();
    // One that returns for another iteration is in the line already.
    if (!orders_.empty() && !request.was_rescheduled) orders_[instance]->Join(request);
  }
}

}  // namespace nereid::schedule
