// SPDX-License-Identifier: Apache-2.0
// Decides whether a request from the network may be in flight.
#pragma once

#include "base/budget.h"
#include "base/status.h"
#include "core/budgets.h"
#include "core/model.h"

namespace nereid::common {

// Returns why no request to `model`, which the caller has pinned, may begin.
base::Status DescribeRefusal(core::Budgets& budgets, core::Model& model);

// Gives a request to `model`, which the caller has pinned for it, its part of what may be in
// flight. The request keeps `grant` until its memory is free. UNAVAILABLE, which counts as a
// failure of the model's, if too many are in flight. Null `budgets` have no limit.
inline base::Status Admit(core::Budgets* budgets, core::Model& model, base::UnitGrant& grant) {
  if (budgets == nullptr) return base::OkStatus();
  // The pin of this request counts.
  if (model.pin_count() <= budgets->limits.requests_per_model && grant.Take(budgets->requests))
      [[likely]]
    return base::OkStatus();
  return DescribeRefusal(*budgets, model);
}

}  // namespace nereid::common
