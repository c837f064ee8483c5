// SPDX-License-Identifier: Apache-2.0
// The parts that validate.cc puts together. Private to this module.
#pragma once

#include "config/errors.h"
#include "config/model_config.h"

namespace nereid::config {

// Each needs the scheduling choice it is named after.
ErrorList CheckDynamicBatching(const ModelConfig& config);
ErrorList CheckSequenceBatching(const ModelConfig& config);
ErrorList CheckEnsemble(const ModelConfig& config);

}  // namespace nereid::config
