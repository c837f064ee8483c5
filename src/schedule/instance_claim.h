// SPDX-License-Identifier: Apache-2.0
// What one instance of a pool needs from the rate limiter before each execution: nothing if its
// rate is not limited.
#pragma once

#include <memory>
#include <utility>

#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// Thread-safe, except for Reset and assignment.
class InstanceClaim {
 public:
  // For an instance whose rate is not limited.
  InstanceClaim() = default;
  explicit InstanceClaim(std::unique_ptr<RateLimiter::Claim> claim) : claim_(std::move(claim)) {}

  bool is_limited() const { return claim_ != nullptr; }
  // Whether the instance may execute now. If not, it waits in line, and its on_grant is called when
  // it may.
  bool TryTake() { return claim_ == nullptr || claim_->TryTake(); }
  // Whether the instance waits for an on_grant.
  bool is_in_line() const { return claim_ != nullptr && claim_->is_waiting(); }
  // Whether the instance has resources, or waits for them.
  bool is_engaged() const { return claim_ != nullptr && !claim_->is_idle(); }
  // Releases the resources, or the place in line, for others; with `wants_more` the instance enters
  // the line again. May call the on_grant of others, so not under a lock that those take.
  void Give(bool wants_more = false) {
    if (claim_ != nullptr) claim_->Give(wants_more);
  }
  // See RateLimiter::Claim.
  void SetLeaving(bool is_leaving) {
    if (claim_ != nullptr) claim_->SetLeaving(is_leaving);
  }
  // Releases everything permanently. Not under a lock that an on_grant takes.
  void Reset() { claim_.reset(); }

 private:
  std::unique_ptr<RateLimiter::Claim> claim_;
};

}  // namespace nereid::schedule
