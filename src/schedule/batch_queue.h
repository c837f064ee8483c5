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

#include "core/model.h"
#include "core/scheduler.h"
#include "schedule/batch_policy.h"
#include "schedule/fair_lanes.h"
#include "schedule/request_list.h"
#include "schedule/request_matcher.h"
#include "schedule/work_source.h"

namespace nereid::schedule {

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
  // Returns a request of the level of `request`, which Push has refused, that makes room for it:
  // the newest of the caller who takes up the most, if that is more than the share of `request`'s
  // caller would be with it. Null if there is none.
  core::RequestPtr MakeRoom(const core::Request& request);
  // Returns null if the queue is empty.
  core::RequestPtr PopFront();
  // Removes `request` from the middle; null if it is not here.
  core::RequestPtr Remove(core::Request& request);
  // Ends all delays: everything that waits may run at once.
  void StopWaiting() { is_draining_ = true; }

  // Returns how many requests would run before `request` if it were pushed now.
  size_t CountAhead(const core::Request& request) const { return lanes_.CountAhead(request); }
  // Whether the caller of `request` has fewer requests here than its share of `total`.
  bool IsBelowShare(const core::Request& request, size_t total) const {
    return lanes_.IsBelowShare(request, total);
  }
  // Returns how long `request` itself, and not its model, says that it may wait here before it is
  // refused; 0 if it does not, or may not, say so.
  uint64_t OwnTimeoutNs(const core::Request& request) const;

  // Returns a request that has expired and whose policy rejects it, or whose deadline has passed;
  // the caller completes it.
  core::RequestPtr PopExpired(uint64_t now_ns);
  // Returns when PopExpired, or the order of the queue, next changes by itself.
  std::optional<uint64_t> NextExpiry() const {
    if (!expired_.empty()) return 0;
    if (expiries_.empty()) return std::nullopt;
    return expiries_.begin()->first;
  }

  bool HasWaiting() const override { return lanes_.size() > 0; }
  BatchDecision Decide(size_t instance, uint64_t now_ns) override;
  void Take(size_t instance, const BatchDecision& decision,
            std::vector<core::RequestPtr>& batch) override;

  size_t size() const { return lanes_.size(); }
  // Returns the time since when the oldest request waits; UINT64_MAX if there is none.
  uint64_t OldestNs() const { return lanes_.OldestNs(); }
  const BatchPolicy& policy() const { return policy_; }

 private:
  // The state of a walk.
  struct Pending;

  void SetExpiry(core::Request& request) {
    request.expires_at_ns = 0;
    if (has_timeouts_ || request.deadline_ns != 0) [[unlikely]]
      ComputeExpiry(request);
  }
  void ComputeExpiry(core::Request& request);
  void ExpireAt(core::Request& request, uint64_t at_ns);
  void ForgetExpiry(core::Request& request);
  // Moves expired requests out of the line.
  void ApplyTimeouts(uint64_t now_ns);
  bool Joins(Pending& pending, core::Request& request);

  const BatchPolicy policy_;
  core::BatchStrategy* const strategy_;
  const size_t max_preferred_;
  const bool has_timeouts_;
  const RequestMatcher matcher_;
  FairLanes lanes_;
  std::multimap<uint64_t, core::Request*> expiries_;  // equal times in the order of arrival
  RequestList expired_;
  size_t hold_until_;
  bool is_draining_ = false;
};

}  // namespace nereid::schedule
