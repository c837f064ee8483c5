// SPDX-License-Identifier: Apache-2.0
// The rules a configuration must keep. Every function reports all faults at once, in Triton's order
// and words (see errors.h for the form); `file` names the configuration in the details and may be
// empty. Functions of this file touch nothing but their arguments.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Everything but tensors and instance groups: name, backend and platform, batching, sequence
// control, ensemble data flow, response cache, metrics. Needs a normalized configuration.
base::Status ValidateModelConfig(const ModelConfig& config, std::string_view file = {});

// Inputs, outputs, batch inputs and batch outputs. Checked after a backend could complete them.
base::Status ValidateTensors(const ModelConfig& config, std::string_view file = {});

// What configurations that ask for GPUs are checked against.
struct GpuSupport {
  std::set<int32_t> gpus;        // devices of this machine with the needed compute capability
  bool built_with_gpus = false;  // whether this server can use GPUs at all
  double min_compute_capability = 0;
};
// Needs groups that NormalizeInstanceGroups has completed.
base::Status ValidateInstanceGroups(const ModelConfig& config, const GpuSupport& support,
                                    std::string_view file = {});

// Whether `config` may be served from a folder of this name.
base::Status ValidateFolderName(const ModelConfig& config, std::string_view folder);

}  // namespace nereid::config
