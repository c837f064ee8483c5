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

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "backend_host/plugin_instance.h"
#include "base/buffer.h"
#include "base/status.h"
#include "config/model_config.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "nereid/backend_inputs.h"

namespace nereid::backend_host {

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
  // Those that any thread may run are initialised now, the others by InitializeOnThread. Once.
  base::Status CreateInstances(core::Model& model);
  // What an instance needs to execute, and where.
  struct InstanceNeeds {
    config::RateLimiter resources;
    int32_t device_id = 0;
  };
  // Of the instances that TakeInstances gives, in its order.
  const std::vector<InstanceNeeds>& instance_needs() const { return instance_needs_; }
  // The instances that take requests. Passive ones stay here. Once, after CreateInstances.
  std::vector<std::unique_ptr<core::Instance>> TakeInstances();
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
  base::Status CreateGroup(const config::InstanceGroup& group, core::Model& model);
  // Initialises the instances that need no thread of their own for that.
  base::Status InitializeInstances(std::span<PluginInstance* const> instances);

  BackendModelOptions options_;
  BackendLibraries& libraries_;
  BackendLibrary& library_;
  bool is_initializing_ = false;
  bool is_initialized_ = false;
  bool is_config_set_ = false;
  void* state_ = nullptr;
  std::map<std::string, std::string> explanations_;
  InputLender input_lender_;  // constant once loaded
  core::Model* model_ = nullptr;                            // once CreateInstances was called
  std::vector<core::MemoryUse> memory_use_;                 // until then
  std::vector<std::unique_ptr<core::Instance>> instances_;  // until they are taken
  std::vector<InstanceNeeds> instance_needs_;
  std::vector<std::unique_ptr<PluginInstance>> passive_instances_;
  std::vector<PluginInstance*> all_instances_;
};

}  // namespace nereid::backend_host
