// SPDX-License-Identifier: Apache-2.0
// Completes a configuration step by step as a model is loaded: from its files, with the server's
// defaults, from its backend, and its instance groups last. These are pure functions: the caller
// reads the folders and asks the backend.
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

// The direct contents of a version folder.
struct VersionFolder {
  std::set<std::string> files;
  std::set<std::string> folders;
};

// Sets `name` if empty, and backend, platform and default_model_filename from the configuration and
// the files. `version` is the version folder whose name sorts first, or nothing if the model has
// none. Fails if nothing identifies the backend.
base::Result<ModelConfig> CompleteFromFiles(ModelConfig config, std::string_view model_name,
                                            const std::optional<VersionFolder>& version);

// What the name or extension of a model's file or folder tells about it.
struct FileFramework {
  std::string_view backend;
  std::string_view file;  // the name that a model file of this framework must have
};
std::optional<FileFramework> FrameworkOfFile(std::string_view name, bool is_folder);

// Returns the backend to which a model's own one hands the file over: "openvino" for an ONNX model
// whose only execution accelerator on the CPU is "openvino"; empty for all others.
std::string_view AcceleratorBackend(const ModelConfig& config);

// Whether KIND_AUTO is KIND_CPU for the model, whatever its backend can do elsewhere: packages of
// AOTInductor contain code for one kind of device, and those for GPUs are not served.
bool IsCpuByDefault(const ModelConfig& config);

// Fills the server's defaults: version policy, preferred batch sizes, sequence idle time, pinned
// memory. Idempotent.
ModelConfig Normalize(ModelConfig config);

// Takes from a backend's completed configuration what a backend may decide: max_batch_size, inputs,
// outputs, the scheduling choice if the user made none, and decoupled; then normalizes again. Fails
// if the backend's scheduling choice differs from the user's.
base::Result<ModelConfig> MergeBackendConfig(ModelConfig config, const ModelConfig& from_backend);

// Gives every instance group a name, a kind and a count; adds one if there is none. `preferred` are
// the backend's preferences (TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup); `gpus` are
// the devices of this machine. Ensembles have no instances and are returned unchanged.
ModelConfig NormalizeInstanceGroups(ModelConfig config, const std::vector<InstanceGroup>& preferred,
                                    const std::set<int32_t>& gpus);

// What a change of configuration requires of a loaded version. The version policy is not compared.
enum class ConfigChange {
  kNothing,
  kInstances,  // only instance_group differs: instances are added and removed in place
  kReload,
};
ConfigChange CompareConfigs(const ModelConfig& from, const ModelConfig& to);

}  // namespace nereid::config
