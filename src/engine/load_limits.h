// SPDX-License-Identifier: Apache-2.0
// What a client that may load models can make the server do with one request: how much it may send,
// and what its configuration may ask for.
#pragma once

#include <string_view>

#include "base/budget.h"
#include "base/status.h"
#include "core/budgets.h"
#include "service/service.h"

namespace nereid::engine {

// Checks a load request and counts what it brings in `grant`, which lasts as long as the load. The
// error names the flag.
base::Status TakeLoad(std::string_view model, const service::LoadOptions& options,
                      core::Budgets& budgets, base::BudgetGrant& grant);

}  // namespace nereid::engine
