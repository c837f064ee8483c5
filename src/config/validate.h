// SPDX-License-Identifier: Apache-2.0
// The rules for a valid configuration. Every function reports all errors at once, in Triton's order
// and words (see errors.h for the form). Those that return a status are for loading a model: `file`
// names the configuration in the details and may be empty. All are pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "config/errors.h"
#include "config/model_config.h"

namespace nereid::config {

// Validates everything except tensors and instance groups: name, backend and platform, batching,
// sequence control, ensemble data flow, response cache, metrics. REQUIRES: `config` is normalized.
ErrorList ModelConfigErrors(const ModelConfig& config);
base::Status ValidateModelConfig(const ModelConfig& config, std::string_view file = {});

// Validates inputs, outputs, batch inputs and batch outputs, after the backend has completed them.
ErrorList TensorErrors(const ModelConfig& config);
base::Status ValidateTensors(const ModelConfig& config, std::string_view file = {});

// The GPUs that a configuration may use.
struct GpuSupport {
  std::set<int32_t> gpus;        // devices of this machine with the required compute capability
  bool built_with_gpus = false;  // whether this server can use GPUs at all
  double min_compute_capability = 0;
};
// REQUIRES: NormalizeInstanceGroups has completed the groups.
ErrorList InstanceGroupErrors(const ModelConfig& config, const GpuSupport& support);
base::Status ValidateInstanceGroups(const ModelConfig& config, const GpuSupport& support,
                                    std::string_view file = {});

// Whether `config` may be in a folder of this name.
base::Status ValidateFolderName(const ModelConfig& config, std::string_view folder);

}  // namespace nereid::config
