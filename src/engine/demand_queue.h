// SPDX-License-Identifier: Apache-2.0
// What waits for models on demand: requests, and loads that somebody asked for. Value types.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "service/service.h"

namespace nereid::engine {

// A request that waits for its model.
struct WaitingRequest {
  std::string version;
  base::TimePoint since;
  service::Service::ModelWaiter done;
};

// A load that somebody asked for explicitly, and waits for.
struct DemandOrder {
  const service::LoadOptions* options;
  bool is_done = false;
  base::Status status;
};

// A model that is to be loaded, and for whom.
struct PendingModel {
  std::list<WaitingRequest> waiting;  // the oldest in front
  std::deque<DemandOrder*> orders;
  bool is_loading = false;
  base::TimePoint loading_since;
  size_t lacking = 0;       // the kind of memory that it waits for
  bool is_blocked = false;  // waits for memory
};

// What a request is told that has waited.
struct DemandOutcome {
  std::string name;
  std::string version;
  base::Status status;
  service::Service::ModelWaiter done;
};
using DemandOutcomes = std::vector<DemandOutcome>;

}  // namespace nereid::engine
