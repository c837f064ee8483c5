// SPDX-License-Identifier: Apache-2.0
// What happens to a request whose model has rules (engine/traffic.h), between reading and
// executing it: it may move to another version, and a copy of it may go to a shadow. No other
// request comes here.
#pragma once

#include <cstdint>
#include <memory>

#include "core/request.h"
#include "engine/life_cycle.h"
#include "engine/mirrors.h"
#include "engine/traffic.h"
#include "service/traffic.h"

namespace nereid::engine {

// Thread-safe.
class TrafficDirector {
 public:
  // `life_cycle` and `submitter` outlive it. `requests_per_model`: the most requests in flight.
  TrafficDirector(const LifeCycle& life_cycle, core::Submitter& submitter,
                  uint64_t requests_per_model)
      : life_cycle_(life_cycle),
        requests_per_model_(requests_per_model),
        mirrors_(life_cycle, submitter) {}

  // See service::Service::Direct.
  void Direct(core::Request& request, const service::HeaderLookup& header);
  // Waits until no copies exist; returns false if `deadline` passes first.
  bool WaitUntilIdle(base::TimePoint deadline) { return mirrors_.WaitUntilIdle(deadline); }

 private:
  // Moves the request to the version where its sequence is, even if that has as many requests in
  // flight as it may have; returns false if there is none.
  bool FollowSequence(core::Request& request, const ModelTable& table) const;
  // Moves the request to that version, if that can serve it and has fewer than `limit` in flight; a
  // request never fails because of it.
  static void MoveTo(core::Request& request, core::ModelHandle target, uint64_t limit);

  const LifeCycle& life_cycle_;
  const uint64_t requests_per_model_;
  Mirrors mirrors_;
};

}  // namespace nereid::engine
