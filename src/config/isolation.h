// SPDX-License-Identifier: Apache-2.0
// The parameters of a model that is to run in a process of its own.
#pragma once

#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Whether the parameter `isolation` asks for a process of its own ("process", as opposed to
// "none"). Any other value is an error. Without the parameter, `otherwise`, which is a value like
// that, says.
base::Result<bool> IsIsolated(const ModelConfig& config, std::string_view otherwise = "none");

}  // namespace nereid::config
