// SPDX-License-Identifier: Apache-2.0
// The interface by which a scheduler sends requests to other models; ensembles use it to call the
// engine.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "core/model_handle.h"
#include "core/request.h"

namespace nereid::core {

// Sends requests. Thread-safe.
class Submitter {
 public:
  virtual ~Submitter() = default;
  // Pins a ready version; -1 is the latest.
  virtual base::Result<ModelHandle> PinModel(std::string_view name, int64_t version) = 0;
  // Validates and schedules a request whose model is pinned, and ensures that it gets a response,
  // perhaps before this returns.
  virtual void Submit(RequestPtr request) = 0;
  // Cancels a request. REQUIRES: the caller keeps it alive.
  virtual void CancelSubmitted(Request& request) = 0;
};

}  // namespace nereid::core
