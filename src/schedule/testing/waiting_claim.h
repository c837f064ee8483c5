// SPDX-License-Identifier: Apache-2.0
// An instance that waits for its grant, for tests.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// Used by one thread.
class WaitingClaim {
 public:
  WaitingClaim(RateLimiter& limiter, std::vector<config::RateLimiter::Resource> needs) {
    auto claim = limiter.Register({.needs = {.resources = std::move(needs)}, .on_grant = [this] {
                                     base::MutexLock lock(mutex_);
                                     is_granted_ = true;
                                     changed_.NotifyAll();
                                   }});
    NEREID_CHECK(claim.ok());
    claim_ = std::move(claim).value();
  }

  RateLimiter::Claim& claim() { return *claim_; }
  void Take() {
    while (!claim_->TryTake()) {
      base::MutexLock lock(mutex_);
      while (!is_granted_) changed_.Wait(mutex_);
      is_granted_ = false;
    }
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_granted_ NEREID_GUARDED_BY(mutex_) = false;
  std::unique_ptr<RateLimiter::Claim> claim_;
};

}  // namespace nereid::schedule
