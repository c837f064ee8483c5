// SPDX-License-Identifier: Apache-2.0
// The flags for models that are loaded on demand.
#pragma once

#include <span>

#include "app/flags.h"
#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

std::span<const Flag> OnDemandFlags();

// Checks the flags above against the control mode.
base::Status CheckOnDemand(const Options& options);

}  // namespace nereid::app
