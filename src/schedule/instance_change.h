// SPDX-License-Identifier: Apache-2.0
// A change of the instances of a model while it is served.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "core/scheduler.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// Instances that come and go while a version stays loaded.
struct InstanceChange {
  // A new instance, with what it needs of the rate limiter.
  struct Added {
    std::unique_ptr<core::Instance> instance;
    RateLimiter::ClaimOptions claim;  // on_grant is set by who takes it
  };
  std::vector<Added> added;
  std::vector<const core::Instance*> removed;  // of those that are there
};

// A scheduler whose instances may change.
class InstanceHost {
 public:
  virtual ~InstanceHost() = default;
  // Starts, initialises and warms up the new instances while the others go on; then they take work,
  // and the removed ones take none. Returns when those are gone, but for those that sequences are
  // bound to, which go with their last sequence. When one of the new instances fails, that error,
  // and nothing has changed. Blocks; one call at a time, by somebody who holds a pin of the model.
  virtual base::Status ChangeInstances(InstanceChange change) = 0;
};

}  // namespace nereid::schedule
