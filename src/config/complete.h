// SPDX-License-Identifier: Apache-2.0
// Filling in what a configuration leaves out, step by step as a model is loaded: from its files,
// with the server's defaults, from its backend, and its instance groups last. Pure functions: the
// caller reads the folders and asks the backend.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

inline constexpr std::string_view kEnsemblePlatform = "ensemble";
inline constexpr uint64_t kDefaultSequenceIdleMicroseconds = 1'000'000;

// What lies directly in a version folder.
struct VersionFolder {
  std::set<std::string> files;
  std::set<std::string> folders;
};

// Sets `name` if empty, and backend, platform and default_model_filename as far as the
// configuration or the files tell them. `version` is the version folder whose name sorts first,
// nothing when the model has none. An error when there is no hint at all of the backend.
base::Result<ModelConfig> CompleteFromFiles(ModelConfig config, std::string_view model_name,
                                            const std::optional<VersionFolder>& version);

// What a file or folder of a model is for, as far as its name or its ending tells.
struct FileFramework {
  std::string_view backend;
  std::string_view file;  // the name under which a model of that framework is found
};
std::optional<FileFramework> FrameworkOfFile(std::string_view name, bool is_folder);

// Fills the server's defaults: version policy, preferred batch sizes, sequence idle time, pinned
// memory. Idempotent.
ModelConfig Normalize(ModelConfig config);

// Takes from a backend's completed configuration what a backend may decide: max_batch_size, inputs,
// outputs, the scheduling choice when none was made, and decoupled; then normalizes again. An error
// when the backend made another scheduling choice than the user.
base::Result<ModelConfig> MergeBackendConfig(ModelConfig config, const ModelConfig& from_backend);

// Gives every instance group a name, a kind and a count; adds one when there is none. `preferred`
// is what the backend asked for (TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup); `gpus`
// are the devices of this machine. Ensembles have no instances and come back unchanged.
ModelConfig NormalizeInstanceGroups(ModelConfig config, const std::vector<InstanceGroup>& preferred,
                                    const std::set<int32_t>& gpus);

// What going from one configuration to the other takes of a version that is loaded. The version
// policy concerns none.
enum class ConfigChange {
  kNothing,
  kInstances,  // nothing but instance_group differs: instances are added and removed in place
  kReload,
};
ConfigChange CompareConfigs(const ModelConfig& from, const ModelConfig& to);

}  // namespace nereid::config
