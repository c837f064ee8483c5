// SPDX-License-Identifier: Apache-2.0
// The waiting requests of one model and the rule that says which of them run together and when:
// priority levels with their queue policies, preferred sizes, delays, matching shapes.
// docs/scheduling.md states the rule for users. Pure logic on clock readings: no threads, no
// waiting.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "config/model_config.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "schedule/request_list.h"
#include "schedule/request_matcher.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

// How a model's requests are queued and batched.
struct BatchPolicy {
  // Off: every request runs alone, as soon as an instance is free.
  bool is_dynamic = false;
  size_t max_batch_size = 1;
  // Ascending; empty means {max_batch_size}.
  std::vector<size_t> preferred_batch_sizes;
  // How long the oldest request may wait for a preferred size to be reached.
  base::nanoseconds max_queue_delay{0};
  bool preserves_order = false;
  uint64_t priority_levels = 0;  // 1 is served first; 0: no levels
  uint64_t default_priority_level = 0;
  config::QueuePolicy default_queue_policy;
  std::map<uint64_t, config::QueuePolicy> priority_queue_policy;
  // Nothing runs before so many requests have waited at the same time, once. Lets a test prepare a
  // queue.
  size_t hold_until_waiting = 0;

  static BatchPolicy FromConfig(const config::ModelConfig& config);
};

// Confined to the lock of its scheduler; owns the requests in it.
class BatchQueue final : public WorkSource {
 public:
  // `model` and `strategy` (may be null) outlive the queue.
  BatchQueue(const core::Model& model, BatchPolicy policy, core::BatchStrategy* strategy = nullptr);
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  // The request has waited since its times.queue_start_ns. Returns false, and leaves the request
  // alone, if its level is full.
  bool Push(core::RequestPtr& request);
  // Returns null if the queue is empty.
  core::RequestPtr PopFront();
  // Removes `request` from the middle; null if it is not here.
  core::RequestPtr Remove(core::Request& request);
  // Ends all delays: everything that waits may run at once.
  void StopWaiting() { is_draining_ = true; }

  // Returns a request that has expired and whose policy rejects it; the caller completes it.
  core::RequestPtr PopExpired(uint64_t now_ns);
  // Returns when PopExpired, or the order of the queue, next changes by itself.
  std::optional<uint64_t> NextExpiry() const;

  bool HasWaiting() const override { return size_ > 0; }
  BatchDecision Decide(size_t instance, uint64_t now_ns) override;
  void Take(size_t instance, const BatchDecision& decision,
            std::vector<core::RequestPtr>& batch) override;

  size_t size() const { return size_; }
  const BatchPolicy& policy() const { return policy_; }

 private:
  // The requests of one priority. Those that lost their turn (DELAY) follow the others.
  struct Level {
    const config::QueuePolicy* policy;
    RequestList waiting;
    RequestList delayed;
    size_t size() const { return waiting.size() + delayed.size(); }
  };
  // An iterator in the order of execution.
  class Walk;
  // The state of a walk.
  struct Pending;

  Level& LevelAt(uint64_t priority);
  uint64_t PriorityOf(const core::Request& request) const;
  void SetExpiry(core::Request& request, const config::QueuePolicy& policy);
  // Moves expired requests out of the line.
  void ApplyTimeouts(uint64_t now_ns);
  bool Joins(Pending& pending, core::Request& request);
  void ForgetExpiry(core::Request& request);

  const BatchPolicy policy_;
  core::BatchStrategy* const strategy_;
  const size_t max_preferred_;
  const RequestMatcher matcher_;
  std::map<uint64_t, Level> levels_;                  // in the order of execution
  std::multimap<uint64_t, core::Request*> expiries_;  // equal times in the order of arrival
  RequestList expired_;
  size_t size_ = 0;  // of all levels
  size_t hold_until_;
  bool is_draining_ = false;
};

}  // namespace nereid::schedule
