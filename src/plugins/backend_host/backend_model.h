// SPDX-License-Identifier: Apache-2.0
// One model version as its backend sees it: the object behind TRITONBACKEND_Model*, from
// ModelInitialize to ModelFinalize, and the maker of its instances. In the order of a load:
//
//   auto loaded = BackendModel::Load(options, libraries);  // the configuration is final now
//   core::Model model(... loaded->config() ...);
//   loaded->CreateInstances(model);
//   model.SetScheduler(... loaded->TakeInstances() ...);
//
// It outlives its instances, and therefore the core::Model whose scheduler runs them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "backend_host/instance_plan.h"
#include "backend_host/plugin_instance.h"
#include "base/buffer.h"
#include "base/mutex.h"
#include "base/status.h"
#include "config/model_config.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "nereid/backend_inputs.h"

namespace nereid::backend_host {

// The arguments for loading a model.
struct BackendModelOptions {
  std::string name;
  int64_t version = 0;
  std::string model_dir;       // contains the version folders
  config::ModelConfig config;  // complete from files, normalized and validated except for tensors
  // Whether the model has a configuration of its own; if not, its backend must complete it.
  bool is_config_provided = true;
  std::string config_file;  // named in messages about the configuration; may be empty
};

// A model of a backend. Thread-compatible; once the instances are made, any thread may call
// CheckReady.
class BackendModel {
 public:
  // Finds and opens the backend, completes and validates the instance groups, and initialises the
  // model, during which the backend may complete the configuration; then validates the tensors.
  // `libraries` outlives the model.
  static base::Result<std::unique_ptr<BackendModel>> Load(BackendModelOptions options,
                                                          BackendLibraries& libraries);
  // Finalizes the model. REQUIRES: its instances are destroyed.
  ~BackendModel();
  BackendModel(const BackendModel&) = delete;
  BackendModel& operator=(const BackendModel&) = delete;

  // The configuration, which is final once loaded.
  const config::ModelConfig& config() const { return options_.config; }
  const std::string& name() const { return options_.name; }
  int64_t version() const { return options_.version; }
  const std::string& model_dir() const { return options_.model_dir; }
  BackendLibrary& library() const { return library_; }
  const BackendLibraries& libraries() const { return libraries_; }

  // Why the backend completed the configuration as it did: a JSON object for each subject, such as
  // "batching". Constant once loaded.
  const std::map<std::string, std::string>& explanations() const { return explanations_; }

  // Makes all instances of the configuration's groups, for executing `model`, which outlives them.
  // Those that any thread may run are initialised now, the others by InitializeOnThread. An error
  // of `check_wanted`, which is called before each instance is made or initialised, ends it. Called
  // once.
  base::Status CreateInstances(core::Model& model,
                               const std::function<base::Status()>& check_wanted = base::OkStatus);
  // The resources and the device that an instance needs to execute.
  struct InstanceNeeds {
    config::RateLimiter resources;
    int32_t device_id = 0;
  };
  // A new instance that accepts requests, to be passed to a scheduler.
  struct MadeInstance {
    std::unique_ptr<core::Instance> instance;
    InstanceNeeds needs;
  };
  // Returns the instances that CreateInstances made, except passive ones, which stay here. Called
  // once.
  std::vector<MadeInstance> TakeInstances();

  // A change of the instances in progress: prepared, carried out by the scheduler, then committed.
  struct InstanceUpdate {
    std::shared_ptr<const config::ModelConfig> config;  // the configuration after the change
    std::vector<MadeInstance> added;
    std::vector<const core::Instance*> removed;  // only those that accept requests

    // The model's own part: its future instances, and passive ones.
    std::vector<InstanceSpec> specs;
    std::vector<PluginInstance*> instances;  // the instance of each of `specs`
    std::vector<std::unique_ptr<PluginInstance>> added_passive;
    std::vector<PluginInstance*> removed_passive;
  };
  // Makes the instances that `groups` require in addition to the existing ones, like
  // CreateInstances. One update at a time, after TakeInstances.
  base::Result<InstanceUpdate> PrepareUpdate(std::vector<config::InstanceGroup> groups,
                                             const std::function<base::Status()>& check_wanted);
  // Completes an update after the scheduler carried it out.
  void CommitUpdate(InstanceUpdate update);
  // Whether the backend permits that instances of a model are initialised concurrently. If the
  // environment variable TRITON_PARALLEL_INSTANCE_LOADING is set, it decides ("1" or not).
  bool loads_instances_in_parallel() const;
  // Whether the backend implements CheckReady.
  bool can_check_ready() const { return library_.entry_points().instance_ready != nullptr; }
  // Asks every instance whether it can execute; returns the first refusal.
  base::Status CheckReady() const;

  // Whether an instance may read inputs and write outputs in the memory of GPUs.
  bool uses_gpu_memory() const;

  bool lends_input_memory() const { return input_lender_.lend != nullptr; }
  // Returns memory of the backend for the inputs of a request; empty if it lends none. Any thread
  // may call this.
  base::BufferRef LendInputMemory(size_t size) const;

  // Called before `instance` is finalized: CheckReady does not ask it any more. Any thread may call
  // this.
  void Forget(PluginInstance& instance);

  // The following are used by the C API.
  bool may_set_config() const { return is_initializing_ && completes_config(); }
  bool completes_config() const { return libraries_.options().auto_complete_config; }
  // Takes from `json` what a backend may decide.
  base::Status SetConfig(std::string_view json, uint32_t config_version);
  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }
  // The function that lends memory for inputs of at least `least_bytes`. Set while the model
  // initialises.
  struct InputLender {
    uint64_t least_bytes = 0;
    NEREIDBACKEND_LendInputFn_t lend = nullptr;
    void* user = nullptr;
  };
  base::Status SetInputLender(InputLender lender);
  // Stores why the backend decided about `subject` as it did. Called while the model initialises.
  base::Status Explain(std::string subject, std::string json);
  // Sets the memory that the model holds, without its instances. Appears in its statistics once it
  // has any.
  void SetMemoryUse(std::vector<core::MemoryUse> use);

 private:
  BackendModel(BackendModelOptions options, BackendLibraries& libraries, BackendLibrary& library);

  base::Status Initialize();
  // Makes what instances on the GPU need, and checks that its memory has room for another.
  base::Status PrepareGpu(const InstanceSpec& spec) const;
  std::unique_ptr<PluginInstance> MakeInstance(const InstanceSpec& spec);
  // Initialises the instances that need no thread of their own for that.
  base::Status InitializeInstances(std::span<PluginInstance* const> instances,
                                   const std::function<base::Status()>& check_wanted);

  BackendModelOptions options_;
  BackendLibraries& libraries_;
  BackendLibrary& library_;
  bool is_initializing_ = false;
  bool is_initialized_ = false;
  bool is_config_set_ = false;
  void* state_ = nullptr;
  std::map<std::string, std::string> explanations_;
  InputLender input_lender_;                 // constant once loaded
  core::Model* model_ = nullptr;             // set by CreateInstances
  std::vector<core::MemoryUse> memory_use_;  // kept until model_ is set
  std::vector<MadeInstance> made_;           // kept until TakeInstances
  std::vector<std::unique_ptr<PluginInstance>> passive_instances_;
  // The specifications and the instances in the order of the configuration. Only updates use them,
  // because an instance may be destroyed before an update removes it here.
  std::vector<InstanceSpec> specs_;
  std::vector<PluginInstance*> instances_;

  // The instances that CheckReady may ask, with the number of threads that are asking each.
  mutable base::Mutex ready_mutex_;
  mutable base::CondVar asked_;
  mutable std::map<PluginInstance*, int> askable_ NEREID_GUARDED_BY(ready_mutex_);
};

}  // namespace nereid::backend_host
