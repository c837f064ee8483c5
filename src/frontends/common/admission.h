// SPDX-License-Identifier: Apache-2.0
// Decides whether a request from the network may be in flight.
#pragma once

#include "base/budget.h"
#include "base/status.h"
#include "core/budgets.h"
#include "core/model.h"
#include "core/model_handle.h"

namespace nereid::common {

// Return why no request to `model` may begin, and count that as a failure of the model's.
base::Status RefuseForModel(core::Budgets& budgets, core::Model& model);
base::Status RefuseForServer(const core::Budgets& budgets, core::Model& model);

// Gives a request of `bytes` to `model` its part of what may be in flight: `model`, which the
// request keeps until it is gone, counts as a request of its version, and `grant` as one of the
// server, both until EndFlight. UNAVAILABLE if too many are in flight. Null `budgets` have no
// limit.
inline base::Status Admit(core::Budgets* budgets, core::ModelHandle& model, uint64_t bytes,
                          base::UnitGrant& grant) {
  if (budgets == nullptr) return base::OkStatus();
  if (!model.CountAsRequest(budgets->limits.requests_per_model, bytes)) [[unlikely]]
    return RefuseForModel(*budgets, *model);
  if (!grant.Take(budgets->requests)) [[unlikely]]
    return RefuseForServer(*budgets, *model);
  return base::OkStatus();
}

// Gives that part back, before the client can have the last response and sends its next request:
// the memory of this one may be needed for longer, by what waits to be sent or by a backend that
// executes it with others.
inline void EndFlight(core::ModelHandle& model, base::UnitGrant& grant) {
  model.EndRequest();
  grant.Reset();
}

}  // namespace nereid::common
