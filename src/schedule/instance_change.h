// SPDX-License-Identifier: Apache-2.0
// A change of the instances of a model while it serves requests.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "core/scheduler.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// An instance for the scheduler that will own it.
struct NewInstance {
  std::unique_ptr<core::Instance> instance;
  // The instance's needs for the rate limiter, without an on_grant, which the scheduler sets;
  // nothing: its rate is not limited.
  std::optional<RateLimiter::ClaimOptions> claim = {};
};

// Instances that are added and removed while a version stays loaded.
struct InstanceChange {
  std::vector<NewInstance> added;
  std::vector<const core::Instance*> removed;  // among the present ones
};

// A scheduler whose instances may change.
class InstanceHost {
 public:
  virtual ~InstanceHost() = default;
  // Starts, initialises and warms up the new instances while the others continue; then the new ones
  // take work, and the removed ones take none. Returns when those are destroyed, except those with
  // sequences or with requests that their backend kept after their execution: they are destroyed
  // after the last of these. If one of the new instances fails, or a thread cannot be started,
  // returns that error and changes nothing. Blocks. REQUIRES: one call at a time, and the caller
  // holds a pin of the model.
  virtual base::Status ChangeInstances(InstanceChange change) = 0;
};

}  // namespace nereid::schedule
