// SPDX-License-Identifier: Apache-2.0
// Loads a model for a command that wants to know what the server makes of it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::app {

// Loads the latest version of `model` under these flags of the server, unloads it, and returns its
// complete configuration. Opens no port.
base::Result<config::ModelConfig> LoadOnce(std::vector<std::string> arguments,
                                           const std::string& model);

}  // namespace nereid::app
