// SPDX-License-Identifier: Apache-2.0
// The parts of validation that validate.cc combines. Private to this module.
#pragma once

#include "base/status.h"
#include "config/errors.h"
#include "config/model_config.h"

namespace nereid::config {

inline constexpr auto kInvalid = base::StatusCode::kInvalidArgument;

// REQUIRES for each: the configuration has the scheduling choice in the function's name.
ErrorList CheckDynamicBatching(const ModelConfig& config);
ErrorList CheckSequenceBatching(const ModelConfig& config);
ErrorList CheckEnsemble(const ModelConfig& config);

}  // namespace nereid::config
