// SPDX-License-Identifier: Apache-2.0
// A change of the instances of a model while it is served.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "core/scheduler.h"
#include "schedule/rate_limiter.h"

namespace nereid::schedule {

// An instance on its way to the scheduler that will own it.
struct NewInstance {
  std::unique_ptr<core::Instance> instance;
  // What it needs of the rate limiter, without an on_grant, which the scheduler sets; nothing: its
  // rate is not limited.
  std::optional<RateLimiter::ClaimOptions> claim = {};
};

// Instances that come and go while a version stays loaded.
struct InstanceChange {
  std::vector<NewInstance> added;
  std::vector<const core::Instance*> removed;  // of those that are there
};

// A scheduler whose instances may change.
class InstanceHost {
 public:
  virtual ~InstanceHost() = default;
  // Starts, initialises and warms up the new instances while the others go on; then they take work,
  // and the removed ones take none. Returns when those are gone, but for those that sequences are
  // bound to, which go with their last sequence. When one of the new instances fails, that error,
  // and nothing has changed. Blocks. REQUIRES: one call at a time, and the caller holds a pin of
  // the model.
  virtual base::Status ChangeInstances(InstanceChange change) = 0;
};

}  // namespace nereid::schedule
