// SPDX-License-Identifier: Apache-2.0
#include "config/complete.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace nereid::config {
namespace {

// How a framework is recognised in a configuration and in a version folder.
struct Framework {
  std::string_view backend;
  std::string_view platform;  // empty: only `backend` identifies it
  std::string_view file;
  enum class Entry { kFile, kFolder, kEither } entry;
};

using Entry = Framework::Entry;

constexpr std::string_view kTensorFlow = "tensorflow";
constexpr std::string_view kPyTorch = "pytorch";
constexpr Framework kSavedModel{kTensorFlow, "tensorflow_savedmodel", "model.savedmodel",
                                Entry::kFolder};
constexpr Framework kGraphDef{kTensorFlow, "tensorflow_graphdef", "model.graphdef", Entry::kFile};
constexpr Framework kTensorRt{"tensorrt", "tensorrt_plan", "model.plan", Entry::kFile};
constexpr Framework kOnnx{"onnxruntime", "onnxruntime_onnx", "model.onnx", Entry::kEither};
constexpr Framework kOpenVino{"openvino", "", "model.xml", Entry::kEither};
constexpr Framework kLibTorch{kPyTorch, "pytorch_libtorch", "model.pt", Entry::kFile};
constexpr Framework kAoti{kPyTorch, "torch_aoti", "model.pt2", Entry::kFile};
constexpr Framework kPython{"python", "", "model.py", Entry::kEither};
constexpr Framework kCaffe2{"caffe2", "caffe2_netdef", "model.netdef", Entry::kFile};
// The platform of older repositories for libraries of one's own. It needs a backend of that name.
constexpr Framework kCustom{"custom", "custom", "", Entry::kFile};

// Completes one configuration. The order of the steps decides which of several files counts.
class Completion {
 public:
  Completion(ModelConfig config, const std::optional<VersionFolder>& version)
      : config_(std::move(config)), version_(version) {}

  base::Result<ModelConfig> Run(std::string_view model_name) {
    if (config_.name.empty()) config_.name = model_name;
    const bool done = TensorFlow() || Plain(kTensorRt) || Plain(kOnnx) || Plain(kOpenVino) ||
                      PyTorch() || Plain(kPython) || Plain(kCaffe2) || Legacy(kCustom);
    if (!done && NothingSaid()) {
      const size_t dot = model_name.find('.');
      if (dot == std::string_view::npos) {
        return base::InvalidArgumentError(fmt::format(
            "Invalid model name: Could not determine backend for model '{}' with no backend in "
            "model configuration. Expected model name of the form 'model.<backend_name>'.",
            model_name));
      }
      config_.backend = model_name.substr(dot + 1);
      config_.default_model_filename = "model." + config_.backend;
    }
    return std::move(config_);
  }

 private:
  bool NothingSaid() const {
    return config_.backend.empty() && config_.platform.empty() &&
           config_.default_model_filename.empty();
  }

  bool HasFileOf(const Framework& framework) const {
    if (!version_) return false;
    const std::string file(framework.file);
    return (framework.entry != Entry::kFolder && version_->files.count(file) != 0) ||
           (framework.entry != Entry::kFile && version_->folders.count(file) != 0);
  }

  void FillFilename(const Framework& framework) {
    if (config_.default_model_filename.empty()) config_.default_model_filename = framework.file;
  }

  // TensorFlow alone is identified by its platform instead of its backend, and a graph file takes
  // precedence over a saved model beside it.
  bool TensorFlow() {
    if (config_.platform.empty() && (config_.backend.empty() || config_.backend == kTensorFlow)) {
      for (const Framework& framework : {kSavedModel, kGraphDef}) {
        const bool named = config_.default_model_filename == framework.file;
        const bool there = config_.default_model_filename.empty() && HasFileOf(framework);
        if (named || there) config_.platform = framework.platform;
      }
    }
    for (const Framework& framework : {kSavedModel, kGraphDef}) {
      if (config_.platform != framework.platform) continue;
      if (config_.backend.empty()) config_.backend = framework.backend;
      FillFilename(framework);
      return true;
    }
    return false;
  }

  // Whether the configuration points to this framework, or the files do if the configuration is
  // empty.
  bool PointsTo(const Framework& framework) const {
    const bool platform = !framework.platform.empty() && config_.platform == framework.platform;
    const bool nothing_else = config_.platform.empty() && config_.default_model_filename.empty();
    return platform || config_.default_model_filename == framework.file ||
           (nothing_else && HasFileOf(framework));
  }

  bool Plain(const Framework& framework) {
    if (config_.backend.empty() && PointsTo(framework)) config_.backend = framework.backend;
    if (config_.backend != framework.backend) return false;
    if (config_.platform.empty()) config_.platform = framework.platform;
    FillFilename(framework);
    return true;
  }

  bool PyTorch() {
    if (config_.backend.empty()) {
      const bool nothing_else = config_.platform.empty() && config_.default_model_filename.empty();
      // Users write the name of the backend; which of its platforms they mean, the file says.
      if (config_.platform == kPyTorch || config_.platform == "libtorch") {
        config_.backend = kPyTorch;
        config_.platform.clear();
      }
      for (const Framework& framework : {kLibTorch, kAoti}) {
        if (!config_.backend.empty() || !PointsTo(framework)) continue;
        config_.backend = kPyTorch;
        if (nothing_else) config_.platform = framework.platform;
      }
    }
    if (config_.backend != kPyTorch) return false;
    // TorchScript's file name is the default only if the platform was not set. A model in Python
    // has its parameters in a file of that name.
    if (config_.platform.empty()) {
      const bool is_compiled = config_.default_model_filename.empty() &&
                               config_.runtime != kPython.file && HasFileOf(kAoti) &&
                               !HasFileOf(kLibTorch);
      const Framework& framework = is_compiled ? kAoti : kLibTorch;
      config_.platform = framework.platform;
      if (config_.runtime != kPython.file) FillFilename(framework);
    } else if (config_.platform == kAoti.platform) {
      FillFilename(kAoti);
    }
    return true;
  }

  bool Legacy(const Framework& framework) {
    if (!config_.backend.empty() || config_.platform != framework.platform) return false;
    config_.backend = framework.backend;
    FillFilename(framework);
    return true;
  }

  ModelConfig config_;
  const std::optional<VersionFolder>& version_;
};

// Returns how many instances a backend runs on a CPU by default: two for those listed, because the
// others are slower with several.
int32_t DefaultCount(InstanceGroup::Kind kind, std::string_view backend) {
  const bool two = backend == kTensorFlow || backend == kOnnx.backend;
  return kind == InstanceGroup::Kind::kCpu && two ? 2 : 1;
}

InstanceGroup GroupFromPreference(const ModelConfig& config,
                                  const std::vector<InstanceGroup>& preferred,
                                  const std::set<int32_t>& gpus) {
  InstanceGroup group{.name = config.name};
  for (const InstanceGroup& wish : preferred) {
    if (wish.kind == InstanceGroup::Kind::kGpu) {
      if (gpus.empty()) continue;
      std::copy_if(wish.gpus.begin(), wish.gpus.end(), std::back_inserter(group.gpus),
                   [&](int32_t gpu) { return gpus.count(gpu) != 0; });
    } else if (wish.kind == InstanceGroup::Kind::kAuto) {
      group.gpus = wish.gpus;
    }
    group.kind = wish.kind;
    group.count = wish.count;
    break;
  }
  return group;
}

InstanceGroup::Kind ResolveAuto(const InstanceGroup& group, const std::set<int32_t>& gpus) {
  const bool all_there = std::all_of(group.gpus.begin(), group.gpus.end(),
                                     [&](int32_t gpu) { return gpus.count(gpu) != 0; });
  return gpus.empty() || !all_there ? InstanceGroup::Kind::kCpu : InstanceGroup::Kind::kGpu;
}

void ApplyPreferences(InstanceGroup& group, const std::vector<InstanceGroup>& preferred,
                      const std::set<int32_t>& gpus) {
  for (const InstanceGroup& wish : preferred) {
    if (group.kind != wish.kind) continue;
    if (group.kind == InstanceGroup::Kind::kGpu && group.gpus.empty() && !wish.gpus.empty()) {
      std::copy_if(wish.gpus.begin(), wish.gpus.end(), std::back_inserter(group.gpus),
                   [&](int32_t gpu) { return gpus.count(gpu) != 0; });
      if (group.gpus.empty()) continue;
    }
    if (group.count < 1 && wish.count > 0) group.count = wish.count;
  }
}

void FillPreferredSizes(std::vector<int32_t>& sizes, int32_t max_batch_size) {
  if (sizes.empty() && max_batch_size > 0) sizes.push_back(max_batch_size);
}

}  // namespace

base::Result<ModelConfig> CompleteFromFiles(ModelConfig config, std::string_view model_name,
                                            const std::optional<VersionFolder>& version) {
  return Completion(std::move(config), version).Run(model_name);
}

std::optional<FileFramework> FrameworkOfFile(std::string_view name, bool is_folder) {
  for (const Framework* framework : {&kSavedModel, &kGraphDef, &kTensorRt, &kOnnx, &kOpenVino,
                                     &kLibTorch, &kAoti, &kPython, &kCaffe2}) {
    if (framework->entry == (is_folder ? Entry::kFile : Entry::kFolder)) continue;
    const std::string_view ending = framework->file.substr(framework->file.rfind('.'));
    if (name.size() > ending.size() && name.ends_with(ending)) {
      return FileFramework{.backend = framework->backend, .file = framework->file};
    }
  }
  return std::nullopt;
}

bool IsCpuByDefault(const ModelConfig& config) { return config.platform == kAoti.platform; }

std::string_view AcceleratorBackend(const ModelConfig& config) {
  const bool has_accelerators = config.optimization && config.optimization->execution_accelerators;
  if (config.backend != kOnnx.backend || !config.runtime.empty() || !has_accelerators) return {};
  const auto& accelerators = config.optimization->execution_accelerators->cpu_execution_accelerator;
  const bool is_openvino = accelerators.size() == 1 && accelerators[0].name == kOpenVino.backend;
  return is_openvino ? kOpenVino.backend : std::string_view();
}

ModelConfig Normalize(ModelConfig config) {
  if (!config.version_policy) config.version_policy = {.choice = VersionPolicy::Latest{1}};
  if (auto* dynamic = std::get_if<DynamicBatching>(&config.scheduling_choice)) {
    FillPreferredSizes(dynamic->preferred_batch_size, config.max_batch_size);
  }
  if (auto* sequence = std::get_if<SequenceBatching>(&config.scheduling_choice)) {
    if (sequence->max_sequence_idle_microseconds == 0) {
      sequence->max_sequence_idle_microseconds = kDefaultSequenceIdleMicroseconds;
    }
    if (auto* oldest = std::get_if<SequenceBatching::StrategyOldest>(&sequence->strategy_choice)) {
      FillPreferredSizes(oldest->preferred_batch_size, config.max_batch_size);
    }
  }
  // An ensemble may not have optimization settings, so it gets no default ones either.
  if (config.ensemble_scheduling() == nullptr) {
    if (!config.optimization) config.optimization.emplace();
    if (!config.optimization->input_pinned_memory) config.optimization->input_pinned_memory = true;
    if (!config.optimization->output_pinned_memory) {
      config.optimization->output_pinned_memory = true;
    }
  }
  return config;
}

base::Result<ModelConfig> MergeBackendConfig(ModelConfig config, const ModelConfig& from_backend) {
  config.max_batch_size = from_backend.max_batch_size;
  config.input = from_backend.input;
  config.output = from_backend.output;
  if (std::holds_alternative<std::monostate>(config.scheduling_choice)) {
    config.scheduling_choice = from_backend.scheduling_choice;
  } else if (config.scheduling_choice.index() != from_backend.scheduling_choice.index()) {
    // These are the numbers of the message's fields. Triton's text also prints the old one twice.
    constexpr std::array<int, 4> kFieldNumbers = {0, 11, 13, 15};
    const int number = kFieldNumbers[config.scheduling_choice.index()];
    return base::InternalError(fmt::format(
        "Cannot update scheduling choice from {} to {} when auto-completing.", number, number));
  }
  if (from_backend.decoupled) config.decoupled = from_backend.decoupled;
  return Normalize(std::move(config));
}

ModelConfig NormalizeInstanceGroups(ModelConfig config, const std::vector<InstanceGroup>& preferred,
                                    const std::set<int32_t>& gpus) {
  if (config.ensemble_scheduling() != nullptr) return config;
  if (config.instance_group.empty()) {
    config.instance_group.push_back(GroupFromPreference(config, preferred, gpus));
  }
  for (size_t i = 0; i < config.instance_group.size(); ++i) {
    InstanceGroup& group = config.instance_group[i];
    if (group.name.empty()) group.name = fmt::format("{}_{}", config.name, i);
    if (group.kind == InstanceGroup::Kind::kAuto) group.kind = ResolveAuto(group, gpus);
    ApplyPreferences(group, preferred, gpus);
    if (group.count < 1) group.count = DefaultCount(group.kind, config.backend);
    if (group.kind == InstanceGroup::Kind::kGpu && group.gpus.empty()) {
      group.gpus.assign(gpus.begin(), gpus.end());
    }
  }
  return config;
}

ConfigChange CompareConfigs(const ModelConfig& from, const ModelConfig& to) {
  ModelConfig comparable = to;
  comparable.instance_group = from.instance_group;
  comparable.version_policy = from.version_policy;
  if (comparable != from) return ConfigChange::kReload;
  // Ensembles are compiled with this knowledge of their models.
  if (from.needs_resources() != to.needs_resources()) return ConfigChange::kReload;
  return from.instance_group == to.instance_group ? ConfigChange::kNothing
                                                  : ConfigChange::kInstances;
}

}  // namespace nereid::config
