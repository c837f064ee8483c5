// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_*: the backend itself, its attributes, and the memory manager.
#include <cstdlib>

#include "abi_objects/error.h"
#include "backend_host/backend_library.h"
#include "backend_host/handles.h"

using nereid::abi_objects::NewError;
using nereid::abi_objects::RunApiCall;
using nereid::backend_host::FromHandle;
using nereid::base::OkStatus;
using nereid::base::Status;

namespace {

using Kind = nereid::config::InstanceGroup::Kind;

nereid::base::Result<Kind> FromKind(TRITONSERVER_InstanceGroupKind kind) {
  switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
      return Kind::kAuto;
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
      return Kind::kCpu;
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
      return Kind::kGpu;
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
      return Kind::kModel;
  }
  return nereid::base::InvalidArgumentError("unknown instance group kind " + std::to_string(kind));
}

// The manager has no state: CPU memory comes from the allocator, and other memory is not available.
char memory_manager;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONBACKEND_API_VERSION_MAJOR;
  *minor = TRITONBACKEND_API_VERSION_MINOR;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* backend, const char** name) {
  *name = FromHandle(backend)->name().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** backend_config) {
  *backend_config = &FromHandle(backend)->config_message();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend* backend,
                                                         TRITONBACKEND_ExecutionPolicy* policy) {
  *policy = FromHandle(backend)->execution_policy();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend* backend,
                                                            TRITONBACKEND_ExecutionPolicy policy) {
  FromHandle(backend)->set_execution_policy(policy);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend* backend,
                                                   TRITONBACKEND_ArtifactType* artifact_type,
                                                   const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = FromHandle(backend)->directory().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend*,
                                                       TRITONBACKEND_MemoryManager** manager) {
  *manager = reinterpret_cast<TRITONBACKEND_MemoryManager*>(&memory_manager);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state) {
  *state = FromHandle(backend)->state();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state) {
  FromHandle(backend)->set_state(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute* backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t* device_ids, const uint64_t id_count) {
  return RunApiCall([&]() -> Status {
    nereid::config::InstanceGroup group;
    NEREID_ASSIGN_OR_RETURN(group.kind, FromKind(kind));
    group.count = static_cast<int32_t>(count);
    for (uint64_t i = 0; device_ids != nullptr && i < id_count; ++i) {
      group.gpus.push_back(static_cast<int32_t>(device_ids[i]));
    }
    FromHandle(backend_attributes)->preferred_groups.push_back(std::move(group));
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* backend_attributes, bool enabled) {
  FromHandle(backend_attributes)->loads_instances_in_parallel = enabled;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager*, void** buffer,
                                                        const TRITONSERVER_MemoryType memory_type,
                                                        const int64_t /*memory_type_id*/,
                                                        const uint64_t byte_size) {
  *buffer = nullptr;
  switch (memory_type) {
    case TRITONSERVER_MEMORY_CPU:
      // At least one byte, so that null always means failure.
      *buffer = std::malloc(byte_size == 0 ? 1 : byte_size);
      if (*buffer != nullptr) return nullptr;
      return NewError(nereid::base::UnavailableError("CPU memory allocation failed"));
    case TRITONSERVER_MEMORY_CPU_PINNED:
      // Backends then use ordinary memory.
      return NewError(nereid::base::UnsupportedError("Pinned memory allocation not supported"));
    case TRITONSERVER_MEMORY_GPU:
      return NewError(nereid::base::UnsupportedError("GPU memory allocation not supported"));
  }
  return NewError(nereid::base::InvalidArgumentError("unknown memory type"));
}

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager*, void* buffer,
                                                    const TRITONSERVER_MemoryType memory_type,
                                                    const int64_t /*memory_type_id*/) {
  if (memory_type == TRITONSERVER_MEMORY_CPU) std::free(buffer);
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
