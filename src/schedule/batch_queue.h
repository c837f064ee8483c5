// SPDX-License-Identifier: Apache-2.0
// The waiting requests of one model and the rule that says which of them run together and when.
// Pure logic on a clock reading: no threads, no waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "core/model.h"
#include "core/request.h"

namespace nereid::schedule {

// How a model's requests are batched.
struct BatchPolicy {
  // Off: every request runs alone, as soon as an instance is free.
  bool is_dynamic = false;
  size_t max_batch_size = 1;
  // Ascending; empty stands for {max_batch_size}.
  std::vector<size_t> preferred_batch_sizes;
  // How long the oldest request may wait for a preferred size to be reached.
  base::nanoseconds max_queue_delay{0};

  static BatchPolicy FromConfig(const config::ModelConfig& config);
};

// What to do with the head of the queue now.
struct BatchDecision {
  size_t request_count = 0;                  // run these many from the front; 0: nothing yet
  std::optional<uint64_t> look_again_at_ns;  // with 0 only: when the answer changes by itself
};

// Thread-compatible; owns the requests in it.
class BatchQueue {
 public:
  // `model` outlives the queue.
  BatchQueue(const core::Model& model, BatchPolicy policy);
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // Its times.queue_start_ns says since when it waits.
  void Push(core::RequestPtr request);
  // Null when the queue is empty.
  core::RequestPtr PopFront();
  // Takes `request` out of the middle; null when it is not here.
  core::RequestPtr Remove(core::Request& request);

  BatchDecision Decide(uint64_t now_ns) const;

  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }
  const BatchPolicy& policy() const { return policy_; }

 private:
  bool CanShareBatch(const core::Request& first, const core::Request& other) const;

  const core::Model& model_;
  const BatchPolicy policy_;
  const size_t max_preferred_;
  const bool compares_inputs_;
  core::Request* head_ = nullptr;
  core::Request* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace nereid::schedule
