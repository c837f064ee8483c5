// SPDX-License-Identifier: Apache-2.0
#include "backend_host/backend_model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "abi_objects/error.h"
#include "backend_host/handles.h"
#include "base/log.h"
#include "base/thread.h"
#include "config/complete.h"
#include "config/parse.h"
#include "config/validate.h"

namespace nereid::backend_host {
namespace {

using Kind = config::InstanceGroup::Kind;

// The instances of a group that lie on one device.
struct Placement {
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device_id;
  std::string host_policy;
};

// One entry for each device that the group names.
base::Result<std::vector<Placement>> Placements(const config::InstanceGroup& group) {
  const auto policy = [&group](std::string otherwise) {
    return group.host_policy.empty() ? std::move(otherwise) : group.host_policy;
  };
  std::vector<Placement> placements;
  switch (group.kind) {
    case Kind::kCpu:
      placements.push_back({TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, policy("cpu")});
      return placements;
    case Kind::kModel:
      placements.push_back({TRITONSERVER_INSTANCEGROUPKIND_MODEL, 0, policy("model")});
      return placements;
    case Kind::kGpu:
      for (const int32_t id : group.gpus) {
        placements.push_back(
            {TRITONSERVER_INSTANCEGROUPKIND_GPU, id, policy("gpu_" + std::to_string(id))});
      }
      return placements;
    case Kind::kAuto:
      break;
  }
  return base::InvalidArgumentError("instance_group kind " +
                                    std::string(config::KindName(group.kind)) + " not supported");
}

// What the configuration of a model says whose backend is a script: the script, and the environment
// that lies beside it, unless the model has one of its own.
void CompleteForScript(const BackendLibrary& library, config::ModelConfig& config) {
  constexpr const char* kScript = "model.py";
  config.runtime = kScript;
  const std::string environment = library.directory() + "/pb_exec_env_" + kScript + ".tar.gz";
  std::error_code error;
  if (std::filesystem::exists(environment, error)) {
    config.parameters.try_emplace("EXECUTION_ENV_PATH", environment);
  }
}

}  // namespace

BackendModel::BackendModel(BackendModelOptions options, BackendLibraries& libraries,
                           BackendLibrary& library)
    : options_(std::move(options)), libraries_(libraries), library_(library) {}

base::Result<std::unique_ptr<BackendModel>> BackendModel::Load(BackendModelOptions options,
                                                               BackendLibraries& libraries) {
  const config::ModelConfig& config = options.config;
  if (config.backend.empty()) {
    return base::InvalidArgumentError("must specify 'backend' for '" + options.name + "'");
  }
  NEREID_ASSIGN_OR_RETURN(BackendLibrary* const library,
                          libraries.Acquire({.model_name = options.name,
                                             .model_dir = options.model_dir,
                                             .version = options.version,
                                             .backend = config.backend,
                                             .runtime = config.runtime}));
  if (library->is_python_based()) CompleteForScript(*library, options.config);
  // Devices are none until GPUs are supported: KIND_AUTO then becomes KIND_CPU, and KIND_GPU is
  // refused with a clear error.
  const config::GpuSupport gpus{.min_compute_capability =
                                    libraries.options().min_compute_capability};
  options.config = config::NormalizeInstanceGroups(
      std::move(options.config), library->attributes().preferred_groups, gpus.gpus);
  NEREID_RETURN_IF_ERROR(config::ValidateInstanceGroups(options.config, gpus, options.config_file));
  // Backends are promised an absolute path; messages keep the one that the user knows.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(options.model_dir, error);
  if (!error) options.model_dir = absolute.lexically_normal().string();
  std::unique_ptr<BackendModel> model(new BackendModel(std::move(options), libraries, *library));
  NEREID_RETURN_IF_ERROR(model->Initialize());
  return model;
}

BackendModel::~BackendModel() {
  instances_.clear();
  passive_instances_.clear();
  const auto finalize = library_.entry_points().model_finalize;
  if (!is_initialized_ || finalize == nullptr) return;
  const base::Status status = abi_objects::CallPlugin(finalize, ToHandle(this));
  if (!status.ok()) NEREID_LOG(kError, "failed finalizing model: {}", status.ToString());
}

base::Status BackendModel::Initialize() {
  if (const auto initialize = library_.entry_points().model_initialize; initialize != nullptr) {
    is_initializing_ = true;
    base::Status status = abi_objects::CallPlugin(initialize, ToHandle(this));
    is_initializing_ = false;
    NEREID_RETURN_IF_ERROR(status);
  }
  is_initialized_ = true;
  if (!is_config_set_ && !options_.is_config_provided) {
    return base::NotFoundError("model configuration is not provided for model '" + name() + "'");
  }
  NEREID_RETURN_IF_ERROR(config::ValidateModelConfig(config(), options_.config_file));
  return config::ValidateTensors(config(), options_.config_file);
}

base::Status BackendModel::SetConfig(std::string_view json, uint32_t config_version) {
  if (!may_set_config()) {
    return base::InvalidArgumentError("the configuration of model '" + name() +
                                      "' can only be set while it is being initialized with "
                                      "auto-completion");
  }
  NEREID_ASSIGN_OR_RETURN(const config::ModelConfig completed,
                          config::ParseModelConfigJson(json, config_version));
  NEREID_ASSIGN_OR_RETURN(options_.config, config::MergeBackendConfig(options_.config, completed));
  is_config_set_ = true;
  return base::OkStatus();
}

void BackendModel::SetMemoryUse(std::vector<core::MemoryUse> use) {
  if (model_ == nullptr) {
    memory_use_ = std::move(use);
  } else {
    model_->statistics().SetMemoryUse(this, std::move(use));
  }
}

base::Status BackendModel::SetInputLender(InputLender lender) {
  if (!is_initializing_) {
    return base::InvalidArgumentError(
        "memory for inputs can be lent from TRITONBACKEND_ModelInitialize on only");
  }
  input_lender_ = lender;
  return {};
}

base::Status BackendModel::Explain(std::string subject, std::string json) {
  if (!is_initializing_) {
    return base::InvalidArgumentError("model '" + name() +
                                      "' can be explained only while it is being initialized");
  }
  explanations_.insert_or_assign(std::move(subject), std::move(json));
  return {};
}

base::BufferRef BackendModel::LendInputMemory(size_t size) const {
  if (size < input_lender_.least_bytes) return {};
  NEREIDBACKEND_LentInput lent{};
  if (!input_lender_.lend(input_lender_.user, size, &lent)) return {};
  base::BufferRef buffer = base::WrapLentBytes(static_cast<std::byte*>(lent.buffer), size,
                                               lent.release, lent.user);
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(lent.buffer) % base::kBufferAlignment == 0;
  return is_aligned ? std::move(buffer) : base::BufferRef();
}

base::Status BackendModel::CreateInstances(core::Model& model) {
  model_ = &model;
  SetMemoryUse(std::move(memory_use_));
  for (const config::InstanceGroup& group : config().instance_group) {
    NEREID_RETURN_IF_ERROR(CreateGroup(group, model));
  }
  std::vector<PluginInstance*> here;
  std::ranges::copy_if(all_instances_, std::back_inserter(here),
                       [](const PluginInstance* instance) {
                         return instance->options().is_passive || instance->runs_on_any_thread();
                       });
  return InitializeInstances(here);
}

bool BackendModel::loads_instances_in_parallel() const {
  const char* const text = std::getenv("TRITON_PARALLEL_INSTANCE_LOADING");
  if (text != nullptr && *text != '\0') return std::string_view(text) == "1";
  return library_.attributes().loads_instances_in_parallel;
}

base::Status BackendModel::InitializeInstances(std::span<PluginInstance* const> instances) {
  if (instances.size() < 2 || !loads_instances_in_parallel()) {
    for (PluginInstance* instance : instances) NEREID_RETURN_IF_ERROR(instance->Initialize());
    return base::OkStatus();
  }
  std::vector<base::Status> results(instances.size());
  {
    std::vector<base::Thread> threads;  // joined at the end of this block
    for (size_t i = 0; i < instances.size(); ++i) {
      threads.emplace_back(instances[i]->name(), [&result = results[i], instance = instances[i]] {
        result = instance->Initialize();
      });
    }
  }
  const auto failure = std::ranges::find_if_not(results, &base::Status::ok);
  return failure == results.end() ? base::OkStatus() : *failure;
}

base::Status BackendModel::CreateGroup(const config::InstanceGroup& group, core::Model& model) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<Placement> placements, Placements(group));
  for (int32_t i = 0; i < group.count; ++i) {
    for (const Placement& placement : placements) {
      PluginInstanceOptions options{.name = group.name + "_" + std::to_string(i),
                                    .kind = placement.kind,
                                    .device_id = placement.device_id,
                                    .is_passive = group.passive,
                                    .host_policy = placement.host_policy,
                                    .profiles = group.profile,
                                    .secondary_devices = group.secondary_devices};
      auto instance = std::make_unique<PluginInstance>(*this, model, std::move(options));
      // A passive instance has no thread; it is initialised here like those that need none.
      all_instances_.push_back(instance.get());
      if (group.passive) {
        passive_instances_.push_back(std::move(instance));
      } else {
        instances_.push_back(std::move(instance));
        instance_needs_.push_back(
            {group.rate_limiter.value_or(config::RateLimiter()), placement.device_id});
      }
    }
  }
  return base::OkStatus();
}

std::vector<std::unique_ptr<core::Instance>> BackendModel::TakeInstances() {
  return std::move(instances_);
}

base::Status BackendModel::CheckReady() const {
  for (const PluginInstance* instance : all_instances_) {
    NEREID_RETURN_IF_ERROR(instance->CheckReady());
  }
  return base::OkStatus();
}

}  // namespace nereid::backend_host
