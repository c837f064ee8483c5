// SPDX-License-Identifier: Apache-2.0
// Which optimization profiles of an engine instances use.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/error.h"

namespace nereid::tensorrt {

// A profile of the engine, as an instance group names it.
struct ProfileChoice {
  std::string name;
  int index = 0;
};

// Returns the optimization profiles that the instance groups name, or the first one. Fails for
// profiles that the engine does not have.
backend::Result<std::vector<int>> ProfilesOf(const backend::ModelConfig& config, int profile_count,
                                             const std::string& model);

// Returns those of one instance, each once, or the first one. Fails for what the engine does not
// have. `owner` names the instance in error texts.
backend::Result<std::vector<ProfileChoice>> ProfilesOf(TRITONBACKEND_ModelInstance* instance,
                                                       int profile_count, const std::string& owner);

}  // namespace nereid::tensorrt
