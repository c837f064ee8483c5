// SPDX-License-Identifier: Apache-2.0
// One backend: an opened and initialised libtriton_<name>.so with its entry points and attributes.
// It is the object behind TRITONBACKEND_Backend*.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi_objects/message.h"
#include "base/shared_library.h"
#include "base/status.h"
#include "config/model_config.h"
#include "memory/gpus.h"
#include "nereid/backend_traits.h"
#include "triton/core/tritonbackend.h"

namespace nereid::backend_host {

// The attributes that a backend sets in TRITONBACKEND_GetBackendAttribute; behind
// TRITONBACKEND_BackendAttribute*.
struct BackendAttributes {
  std::vector<config::InstanceGroup> preferred_groups;  // most preferred first
  bool loads_instances_in_parallel = false;
};

// The functions that a backend exports; null if it lacks one. Only execute is required.
struct BackendEntryPoints {
  using BackendFunction = TRITONSERVER_Error*(TRITONBACKEND_Backend*);
  using ModelFunction = TRITONSERVER_Error*(TRITONBACKEND_Model*);
  using InstanceFunction = TRITONSERVER_Error*(TRITONBACKEND_ModelInstance*);
  using AttributeFunction = TRITONSERVER_Error*(TRITONBACKEND_Backend*,
                                                TRITONBACKEND_BackendAttribute*);
  using ExecuteFunction = TRITONSERVER_Error*(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**,
                                              uint32_t);
  using TraitsFunction = uint32_t();
  using BeginFunction = TRITONSERVER_Error*(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request**,
                                            uint32_t, uint64_t, bool*);
  using EndFunction = void(TRITONBACKEND_ModelInstance*);

  BackendFunction* initialize = nullptr;
  BackendFunction* finalize = nullptr;
  AttributeFunction* get_attribute = nullptr;
  ModelFunction* model_initialize = nullptr;
  ModelFunction* model_finalize = nullptr;
  InstanceFunction* instance_initialize = nullptr;
  InstanceFunction* instance_finalize = nullptr;
  InstanceFunction* instance_ready = nullptr;
  ExecuteFunction* execute = nullptr;
  TraitsFunction* traits = nullptr;
  BeginFunction* begin = nullptr;  // set only together with `end`
  EndFunction* end = nullptr;
};

// The arguments for opening a backend.
struct BackendLibraryOptions {
  std::string name;
  std::string directory;    // the folder of the library; absolute
  std::string path;         // of the library
  std::string config_json;  // {"cmdline":{...}}
  bool is_python_based =
      false;  // the Python backend's library, run for the model.py in `directory`
  memory::Gpus* gpus = nullptr;  // of the server, or null; outlives the backend
};

// A loaded backend. Immutable except for the backend's own pointer, which only the backend
// accesses.
class BackendLibrary {
 public:
  // Opens and initialises the backend.
  static base::Result<std::unique_ptr<BackendLibrary>> Load(BackendLibraryOptions options);
  // Finalizes the backend; the library stays mapped until the process ends.
  ~BackendLibrary();
  BackendLibrary(const BackendLibrary&) = delete;
  BackendLibrary& operator=(const BackendLibrary&) = delete;

  const std::string& name() const { return options_.name; }
  const std::string& directory() const { return options_.directory; }
  const std::string& path() const { return options_.path; }
  const std::string& config_json() const { return options_.config_json; }
  bool is_python_based() const { return options_.is_python_based; }
  const BackendEntryPoints& entry_points() const { return entry_points_; }
  const BackendAttributes& attributes() const { return attributes_; }
  // Whether Execute may be called from any thread and does not block.
  bool runs_on_any_thread() const { return (traits_ & NEREIDBACKEND_TRAIT_ANY_THREAD) != 0; }
  // Whether every byte of every output buffer is written before its response is sent.
  bool writes_outputs() const { return (traits_ & NEREIDBACKEND_TRAIT_WRITES_OUTPUTS) != 0; }
  // Whether inputs must be in host memory, whatever kind an instance is.
  bool uses_host_tensors() const { return (traits_ & NEREIDBACKEND_TRAIT_HOST_TENSORS) != 0; }
  // Whether KIND_AUTO is KIND_CPU.
  bool is_cpu_by_default() const { return (traits_ & NEREIDBACKEND_TRAIT_CPU_BY_DEFAULT) != 0; }
  // Whether tensors may be in memory that a client can change at any time.
  bool stands_changes() const { return (traits_ & NEREIDBACKEND_TRAIT_STANDS_CHANGES) != 0; }

  // The following are used by the C API.
  memory::Gpus* gpus() const { return options_.gpus; }
  TRITONSERVER_Message& config_message() { return config_message_; }
  TRITONBACKEND_ExecutionPolicy execution_policy() const { return execution_policy_; }
  void set_execution_policy(TRITONBACKEND_ExecutionPolicy policy) { execution_policy_ = policy; }
  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }

 private:
  BackendLibrary(BackendLibraryOptions options, std::unique_ptr<base::SharedLibrary> library);

  base::Status FindEntryPoints();
  base::Status Initialize();

  const BackendLibraryOptions options_;
  const std::unique_ptr<base::SharedLibrary> library_;
  TRITONSERVER_Message config_message_;
  BackendEntryPoints entry_points_;
  BackendAttributes attributes_;
  TRITONBACKEND_ExecutionPolicy execution_policy_ = TRITONBACKEND_EXECUTION_BLOCKING;
  uint32_t traits_ = 0;
  bool is_initialized_ = false;
  void* state_ = nullptr;
};

}  // namespace nereid::backend_host
