// SPDX-License-Identifier: Apache-2.0
// Decides whether a request from the network may be in flight.
#pragma once

#include "base/budget.h"
#include "base/status.h"
#include "core/budgets.h"
#include "core/cancel_handle.h"
#include "core/model.h"
#include "core/model_handle.h"
#include "core/request.h"
#include "core/response.h"

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

// Gives back the part of the request of `handle`, which ends with `response`, or without one if
// that is null. Closes the handle. Returns what keeps the request if there is no response, unless
// somebody is cancelling it: dropping it may destroy the request and its sink.
inline core::RequestRef EndFlight(core::CancelHandle& handle, const core::Response* response,
                                  base::UnitGrant& grant) {
  core::RequestRef request;
  if (response != nullptr) {
    handle.Close();
    EndFlight(response->request().model, grant);
  } else if ((request = handle.Take())) {
    EndFlight(request->model, grant);
  }
  return request;
}

}  // namespace nereid::common
