// SPDX-License-Identifier: Apache-2.0
// How a scheduler sends requests of its own to other models: the ensemble's way back into the
// engine.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "core/model_handle.h"
#include "core/request.h"

namespace nereid::core {

// Thread-safe.
class Submitter {
 public:
  virtual ~Submitter() = default;
  // Pins a version that is ready; -1 is the latest.
  virtual base::Result<ModelHandle> PinModel(std::string_view name, int64_t version) = 0;
  // Checks a request whose model is pinned, schedules it and sees to it that it is answered,
  // perhaps before this returns.
  virtual void Submit(RequestPtr request) = 0;
  // Cancels a request that something else keeps alive.
  virtual void CancelSubmitted(Request& request) = 0;
};

}  // namespace nereid::core
