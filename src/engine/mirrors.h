// SPDX-License-Identifier: Apache-2.0
// Copies of requests for the shadow of a model, and what compares their answers.
//
// A copy is made before the request itself is scheduled, because that changes it, and is sent when
// the request is gone, that is after its response is on its way: the shadow cannot delay it. A
// shadow that is slow keeps its places, and further copies are dropped.
#pragma once

#include <memory>

#include "base/task_pool.h"
#include "core/request.h"
#include "core/submitter.h"
#include "engine/life_cycle.h"
#include "engine/traffic.h"

namespace nereid::engine {

// Thread-safe. No copy may be on its way when it is destroyed, which holds once all models are
// unloaded and WaitUntilIdle has returned true.
class Mirrors {
 public:
  // Both outlive it.
  Mirrors(const LifeCycle& life_cycle, core::Submitter& submitter)
      : life_cycle_(life_cycle), submitter_(submitter), pool_("mirror", kThreads) {}

  // Copies `request`, which no scheduler has seen yet, or counts a dropped copy. REQUIRES:
  // `traffic` has a shadow.
  void Begin(core::Request& request, const std::shared_ptr<const Traffic>& traffic);
  // Waits until what was begun has been compared, as far as threads here have to do with it.
  bool WaitUntilIdle(base::TimePoint deadline) { return pool_.WaitUntilIdle(deadline); }

 private:
  static constexpr size_t kThreads = 2;

  friend class MirroredRequest;
  friend class ShadowRequest;

  const LifeCycle& life_cycle_;
  core::Submitter& submitter_;
  base::TaskPool pool_;
};

}  // namespace nereid::engine
