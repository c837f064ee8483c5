// SPDX-License-Identifier: Apache-2.0
// One model version as its backend sees it: the object behind TRITONBACKEND_Model*, from
// ModelInitialize to ModelFinalize, and the maker of its instances. In the order of a load:
//
//   auto loaded = BackendModel::Load(options, libraries);  // the configuration is final now
//   core::Model model(... loaded->config() ...);
//   loaded->CreateInstances(model);
//   model.SetScheduler(... loaded->TakeInstances() ...);
//
// It outlives its instances, hence the core::Model whose scheduler runs them.
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

// What a backend's model is made from.
struct BackendModelOptions {
  std::string name;
  int64_t version = 0;
  std::string model_dir;       // holds the version folders
  config::ModelConfig config;  // complete from files, normalized and validated, tensors apart
  // Whether the model has a configuration of its own; without one its backend must complete it.
  bool is_config_provided = true;
  std::string config_file;  // named in messages about the configuration; may be empty
};

// Thread-compatible; CheckReady may be called by any thread once the instances are made.
class BackendModel {
 public:
  // Finds and opens the backend, completes and checks the instance groups, and initialises the
  // model, within which the backend may complete the configuration; then checks the tensors.
  // `libraries` outlives the model.
  static base::Result<std::unique_ptr<BackendModel>> Load(BackendModelOptions options,
                                                          BackendLibraries& libraries);
  // Finalizes the model. Its instances are gone by then.
  ~BackendModel();
  BackendModel(const BackendModel&) = delete;
  BackendModel& operator=(const BackendModel&) = delete;

  // Final once loaded.
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
  // Those that any thread may run are initialised now, the others by InitializeOnThread. Once. Each
  // time before an instance is made or initialised, an error of `check_wanted` ends it.
  base::Status CreateInstances(core::Model& model,
                               const std::function<base::Status()>& check_wanted = base::OkStatus);
  // What an instance needs to execute, and where.
  struct InstanceNeeds {
    config::RateLimiter resources;
    int32_t device_id = 0;
  };
  // An instance that takes requests, on its way to who runs it.
  struct MadeInstance {
    std::unique_ptr<core::Instance> instance;
    InstanceNeeds needs;
  };
  // Those that CreateInstances made. Passive ones stay here. Once.
  std::vector<MadeInstance> TakeInstances();

  // A change of the instances on its way: prepared, carried out by who runs them, then committed.
  struct InstanceUpdate {
    std::shared_ptr<const config::ModelConfig> config;  // as it will be
    std::vector<MadeInstance> added;
    std::vector<const core::Instance*> removed;  // of those that take requests

    // The model's own: what it will have, and passive ones.
    std::vector<InstanceSpec> specs;
    std::vector<PluginInstance*> instances;  // of each of `specs`
    std::vector<std::unique_ptr<PluginInstance>> added_passive;
    std::vector<PluginInstance*> removed_passive;
  };
  // Makes the instances that `groups` ask for beyond those that there are, as CreateInstances does.
  // One update at a time, after TakeInstances.
  base::Result<InstanceUpdate> PrepareUpdate(std::vector<config::InstanceGroup> groups,
                                             const std::function<base::Status()>& check_wanted);
  // `update` was carried out.
  void CommitUpdate(InstanceUpdate update);
  // The backend lets instances of a model be initialised at the same time. The environment variable
  // TRITON_PARALLEL_INSTANCE_LOADING ("1" or not) decides where it is set.
  bool loads_instances_in_parallel() const;
  // Whether the backend has an answer to CheckReady.
  bool can_check_ready() const { return library_.entry_points().instance_ready != nullptr; }
  // Asks every instance whether it can execute; the first refusal.
  base::Status CheckReady() const;

  bool lends_input_memory() const { return input_lender_.lend != nullptr; }
  // Memory of the backend's for the inputs of a request; empty where it lends none. Any thread.
  base::BufferRef LendInputMemory(size_t size) const;

  // `instance` is about to be finalized: it is not asked any more whether it is ready. Any thread.
  void Forget(PluginInstance& instance);

  // For the C API.
  bool may_set_config() const { return is_initializing_ && completes_config(); }
  bool completes_config() const { return libraries_.options().auto_complete_config; }
  // Takes over what a backend may decide from `json`.
  base::Status SetConfig(std::string_view json, uint32_t config_version);
  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }
  // Who lends memory for inputs of at least `least_bytes`. While the model initialises.
  struct InputLender {
    uint64_t least_bytes = 0;
    NEREIDBACKEND_LendInputFn_t lend = nullptr;
    void* user = nullptr;
  };
  base::Status SetInputLender(InputLender lender);
  // Keeps why the backend decided about `subject` as it did. While the model initialises.
  base::Status Explain(std::string subject, std::string json);
  // What the model holds, its instances apart. Shown in its statistics once there are some.
  void SetMemoryUse(std::vector<core::MemoryUse> use);

 private:
  BackendModel(BackendModelOptions options, BackendLibraries& libraries, BackendLibrary& library);

  base::Status Initialize();
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
  core::Model* model_ = nullptr;             // once CreateInstances was called
  std::vector<core::MemoryUse> memory_use_;  // until then
  std::vector<MadeInstance> made_;           // until they are taken
  std::vector<std::unique_ptr<PluginInstance>> passive_instances_;
  // What there is, in the order of the configuration, and the instance of each. For updates only,
  // which may be the second to know that one of them is gone.
  std::vector<InstanceSpec> specs_;
  std::vector<PluginInstance*> instances_;

  // Of instances that may be asked whether they are ready, by how many threads do so.
  mutable base::Mutex ready_mutex_;
  mutable base::CondVar asked_;
  mutable std::map<PluginInstance*, int> askable_ NEREID_GUARDED_BY(ready_mutex_);
};

}  // namespace nereid::backend_host
