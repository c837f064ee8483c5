// SPDX-License-Identifier: Apache-2.0
// Copies of requests for the shadow of a model, and what compares their responses.
//
// A copy is made before the request itself is scheduled, because that changes it, and is sent when
// the request is gone, that is after its response is on its way: the shadow cannot delay it. A
// shadow that is slow keeps its places, and further copies are dropped.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "base/task_pool.h"
#include "core/request.h"
#include "core/submitter.h"
#include "engine/life_cycle.h"
#include "engine/traffic.h"

namespace nereid::engine {

// Thread-safe. No copy may exist when it is destroyed, which holds once all models are unloaded and
// WaitUntilIdle has returned true.
class Mirrors {
 public:
  // Both outlive it.
  Mirrors(const LifeCycle& life_cycle, core::Submitter& submitter)
      : life_cycle_(life_cycle), submitter_(submitter), pool_("mirror", kThreads) {}

  // Copies `request`, which no scheduler has seen yet, or counts a dropped copy. REQUIRES:
  // `traffic` has a shadow.
  void Begin(core::Request& request, const std::shared_ptr<const Traffic>& traffic);
  // Waits until every copy that was begun has been compared or given up; returns false if
  // `deadline` passes first.
  bool WaitUntilIdle(base::TimePoint deadline);

 private:
  static constexpr size_t kThreads = 2;

  friend class MirrorCount;
  friend class MirroredRequest;
  friend class ShadowRequest;

  const LifeCycle& life_cycle_;
  core::Submitter& submitter_;
  base::Mutex mutex_;
  base::CondVar none_left_;
  // The copies that exist. The threads alone do not tell: a request lets go of its model before its
  // sink hears that it is gone, and only then there is work for a thread.
  size_t count_ NEREID_GUARDED_BY(mutex_) = 0;
  base::TaskPool pool_;  // the last member, because its threads use the others
};

}  // namespace nereid::engine
