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
#include "config/isolation.h"
#include "config/parse.h"
#include "config/validate.h"
#include "core/execution_mark.h"

namespace nereid::backend_host {
namespace {

constexpr const char* kScript = "model.py";

// Completes the configuration of a model whose backend is a script: adds the script and, unless the
// model has its own, the environment beside the script.
void CompleteForScript(const BackendLibrary& library, config::ModelConfig& config) {
  config.runtime = kScript;
  const std::string environment = library.directory() + "/pb_exec_env_" + kScript + ".tar.gz";
  std::error_code error;
  if (std::filesystem::exists(environment, error)) {
    config.parameters.try_emplace("EXECUTION_ENV_PATH", environment);
  }
}

base::Result<config::ModelConfig> CompleteGroups(config::ModelConfig config,
                                                 const BackendLibraries& libraries,
                                                 const BackendLibrary& library,
                                                 const std::string& config_file) {
  using config::InstanceGroup;
  config::GpuSupport gpus{.min_compute_capability = libraries.options().min_compute_capability};
  if (const memory::Gpus* const found = libraries.options().gpus; found != nullptr) {
    gpus.gpus = found->devices();
    gpus.built_with_gpus = found->driver() != nullptr;
  }
  std::vector<InstanceGroup> preferred = library.attributes().preferred_groups;
  if (library.is_cpu_by_default() || config::IsCpuByDefault(config)) {
    if (preferred.empty()) preferred.push_back({.kind = InstanceGroup::Kind::kCpu, .count = 0});
    for (InstanceGroup& group : config.instance_group) {
      const bool is_open = group.kind == InstanceGroup::Kind::kAuto && group.gpus.empty();
      if (is_open) group.kind = InstanceGroup::Kind::kCpu;
    }
  }
  config = config::NormalizeInstanceGroups(std::move(config), preferred, gpus.gpus);
  NEREID_RETURN_IF_ERROR(config::ValidateInstanceGroups(config, gpus, config_file));
  return config;
}

std::string FolderOf(const std::string& backend, const BackendLibraries& libraries) {
  return libraries.options().backend_directory + "/" + backend;
}

// Whether the model is to run in a process of its own. Python models do so in any case.
base::Result<bool> IsIsolated(const BackendModelOptions& options,
                              const BackendLibraries& libraries) {
  const std::string& backend = options.config.backend;
  std::string otherwise = "none";
  for (const std::string& name : {std::string(), backend}) {
    const auto found = libraries.options().backend_settings.find(name);
    if (found == libraries.options().backend_settings.end()) continue;
    const auto setting = found->second.find(kIsolation);
    if (setting != found->second.end()) otherwise = setting->second;
  }
  NEREID_ASSIGN_OR_RETURN(const bool wanted, config::IsIsolated(options.config, otherwise));
  const bool is_python = backend == "python" || options.config.runtime == kScript ||
                         (!libraries.IsInstalled(backend) &&
                          std::filesystem::exists(FolderOf(backend, libraries) + "/" + kScript));
  return wanted && !is_python;
}

// Returns the library that runs the model. One that stands in for it, if the model is isolated. An
// ONNX model that asks for OpenVINO goes to OpenVINO's backend; where that is not installed, ONNX
// Runtime's says what it has instead.
base::Result<BackendLibrary*> AcquireLibrary(const BackendModelOptions& options,
                                             BackendLibraries& libraries) {
  const std::string other(config::AcceleratorBackend(options.config));
  const bool is_handed_over = !other.empty() && libraries.IsInstalled(other);
  NEREID_ASSIGN_OR_RETURN(const bool is_isolated, IsIsolated(options, libraries));
  if (is_isolated) {
    return libraries.Acquire({.model_name = options.name,
                              .model_dir = FolderOf(kIsolation, libraries),
                              .backend = kIsolation,
                              .runtime = {}});
  }
  return libraries.Acquire({.model_name = options.name,
                            .model_dir = options.model_dir,
                            .version = options.version,
                            .backend = is_handed_over ? other : options.config.backend,
                            .runtime = options.config.runtime});
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
  NEREID_ASSIGN_OR_RETURN(BackendLibrary* const library, AcquireLibrary(options, libraries));
  if (library->is_python_based()) CompleteForScript(*library, options.config);
  NEREID_ASSIGN_OR_RETURN(options.config, CompleteGroups(std::move(options.config), libraries,
                                                         *library, options.config_file));
  // Backends require an absolute path; messages keep the user's.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(options.model_dir, error);
  if (!error) options.model_dir = absolute.lexically_normal().string();
  std::unique_ptr<BackendModel> model(new BackendModel(std::move(options), libraries, *library));
  NEREID_RETURN_IF_ERROR(model->Initialize());
  return model;
}

BackendModel::~BackendModel() {
  made_.clear();
  passive_instances_.clear();
  const auto finalize = library_.entry_points().model_finalize;
  if (!is_initialized_ || finalize == nullptr) return;
  const base::Status status = abi_objects::CallPlugin(finalize, ToHandle(this));
  if (!status.ok()) NEREID_LOG(kError, "failed finalizing model: {}", status.ToString());
}

base::Status BackendModel::Initialize() {
  if (const auto initialize = library_.entry_points().model_initialize; initialize != nullptr) {
    is_initializing_ = true;
    core::ExecutionMark mark(core::ExecutionMark::Purpose::kLoading, name(), options_.version);
    const core::ExecutionMark::Call call(mark);
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
  base::BufferRef buffer =
      base::WrapLentBytes(static_cast<std::byte*>(lent.buffer), size, lent.release, lent.user);
  const bool is_aligned = reinterpret_cast<uintptr_t>(lent.buffer) % base::kBufferAlignment == 0;
  return is_aligned ? std::move(buffer) : base::BufferRef();
}

base::Status BackendModel::CreateInstances(core::Model& model,
                                           const std::function<base::Status()>& check_wanted) {
  model_ = &model;
  SetMemoryUse(std::move(memory_use_));
  NEREID_ASSIGN_OR_RETURN(InstanceUpdate update,
                          PrepareUpdate(config().instance_group, check_wanted));
  made_ = std::move(update.added);
  CommitUpdate(std::move(update));
  return base::OkStatus();
}

base::Result<BackendModel::InstanceUpdate> BackendModel::PrepareUpdate(
    std::vector<config::InstanceGroup> groups, const std::function<base::Status()>& check_wanted) {
  config::ModelConfig config = options_.config;
  config.instance_group = std::move(groups);
  NEREID_ASSIGN_OR_RETURN(
      config, CompleteGroups(std::move(config), libraries_, library_, options_.config_file));
  NEREID_RETURN_IF_ERROR(config::ValidateModelConfig(config, options_.config_file));
  NEREID_ASSIGN_OR_RETURN(const std::vector<InstanceSpec> wanted,
                          ListInstances(config.instance_group));
  const InstancePlan plan = PlanInstances(specs_, wanted);
  InstanceUpdate update;
  update.config = std::make_shared<const config::ModelConfig>(std::move(config));
  for (const size_t kept : plan.kept) {
    update.specs.push_back(specs_[kept]);
    update.instances.push_back(instances_[kept]);
  }
  for (const size_t removed : plan.removed) {
    if (specs_[removed].group.passive) {
      update.removed_passive.push_back(instances_[removed]);
    } else {
      update.removed.push_back(instances_[removed]);
    }
  }
  std::vector<PluginInstance*> here;
  for (const size_t added : plan.added) {
    NEREID_RETURN_IF_ERROR(check_wanted());
    const InstanceSpec& spec = wanted[added];
    NEREID_RETURN_IF_ERROR(PrepareGpu(spec));
    std::unique_ptr<PluginInstance> made = MakeInstance(spec);
    update.specs.push_back(spec);
    update.instances.push_back(made.get());
    // A passive instance has no thread; it is initialised here like those that need none.
    if (spec.group.passive || made->runs_on_any_thread()) here.push_back(made.get());
    if (spec.group.passive) {
      update.added_passive.push_back(std::move(made));
    } else {
      update.added.push_back(
          {std::move(made),
           {spec.group.rate_limiter.value_or(config::RateLimiter()), spec.device_id}});
    }
  }
  NEREID_RETURN_IF_ERROR(InitializeInstances(here, check_wanted));
  return update;
}

void BackendModel::CommitUpdate(InstanceUpdate update) {
  specs_ = std::move(update.specs);
  instances_ = std::move(update.instances);
  std::erase_if(passive_instances_, [&](const auto& passive) {
    return std::ranges::find(update.removed_passive, passive.get()) != update.removed_passive.end();
  });
  for (auto& added : update.added_passive) passive_instances_.push_back(std::move(added));
}

bool BackendModel::uses_gpu_memory() const {
  return !library_.uses_host_tensors() && std::ranges::any_of(specs_, [](const InstanceSpec& spec) {
    return spec.kind != TRITONSERVER_INSTANCEGROUPKIND_CPU && !spec.group.passive;
  });
}

// As in Triton, the share of a GPU's memory that may be in use limits which instances are made.
base::Status BackendModel::PrepareGpu(const InstanceSpec& spec) const {
  memory::Gpus* const gpus = libraries_.options().gpus;
  if (spec.kind != TRITONSERVER_INSTANCEGROUPKIND_GPU || gpus == nullptr) return base::OkStatus();
  gpus->Prepare(spec.device_id);
  const auto& settings = libraries_.options().backend_settings;
  const auto common = settings.find("");
  if (common == settings.end()) return base::OkStatus();
  const auto limit =
      common->second.find("model-load-gpu-limit-device-" + std::to_string(spec.device_id));
  if (limit == common->second.end()) return base::OkStatus();
  NEREID_ASSIGN_OR_RETURN(const memory::CudaDriver::MemoryInfo memory,
                          gpus->driver()->ReadMemory(spec.device_id));
  const double allowed = static_cast<double>(memory.total) * std::stod(limit->second);
  if (static_cast<double>(memory.total - memory.free) <= allowed) return base::OkStatus();
  return base::UnavailableError("can not create model '" + spec.name +
                                "': memory limit set for GPU " + std::to_string(spec.device_id) +
                                " has exceeded, model loading is rejected.");
}

std::unique_ptr<PluginInstance> BackendModel::MakeInstance(const InstanceSpec& spec) {
  auto made = std::make_unique<PluginInstance>(
      *this, *model_,
      PluginInstanceOptions{.name = spec.name,
                            .kind = spec.kind,
                            .device_id = spec.device_id,
                            .is_passive = spec.group.passive,
                            .host_policy = spec.host_policy,
                            .profiles = spec.group.profile,
                            .secondary_devices = spec.group.secondary_devices});
  base::MutexLock lock(ready_mutex_);
  askable_[made.get()] = 0;
  return made;
}

bool BackendModel::loads_instances_in_parallel() const {
  const char* const text = std::getenv("TRITON_PARALLEL_INSTANCE_LOADING");
  if (text != nullptr && *text != '\0') return std::string_view(text) == "1";
  return library_.attributes().loads_instances_in_parallel;
}

base::Status BackendModel::InitializeInstances(std::span<PluginInstance* const> instances,
                                               const std::function<base::Status()>& check_wanted) {
  if (instances.size() < 2 || !loads_instances_in_parallel()) {
    for (PluginInstance* instance : instances) {
      NEREID_RETURN_IF_ERROR(check_wanted());
      NEREID_RETURN_IF_ERROR(instance->Initialize());
    }
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

std::vector<BackendModel::MadeInstance> BackendModel::TakeInstances() { return std::move(made_); }

base::Status BackendModel::CheckReady() const {
  std::vector<PluginInstance*> asked;
  {
    base::MutexLock lock(ready_mutex_);
    for (auto& [instance, askers] : askable_) {
      ++askers;
      asked.push_back(instance);
    }
  }
  base::Status status;
  for (PluginInstance* const instance : asked) {
    if (status.ok()) status = instance->CheckReady();
    base::MutexLock lock(ready_mutex_);
    --askable_.at(instance);
    asked_.NotifyAll();
  }
  return status;
}

void BackendModel::Forget(PluginInstance& instance) {
  base::MutexLock lock(ready_mutex_);
  const auto found = askable_.find(&instance);
  if (found == askable_.end()) return;
  while (found->second > 0) asked_.Wait(ready_mutex_);
  askable_.erase(found);
}

}  // namespace nereid::backend_host
