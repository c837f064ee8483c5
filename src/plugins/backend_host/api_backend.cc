// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_*: the backend itself, its attributes, and the memory manager.
#include <cstdlib>

#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "backend_host/backend_library.h"
#include "backend_host/handles.h"

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

// A manager is the GPUs of its server. Host memory needs no manager, so that a server without GPUs
// has one only because null would mean failure.
char no_gpus;

TRITONBACKEND_MemoryManager* ToManager(nereid::memory::Gpus* gpus) {
  return gpus == nullptr ? reinterpret_cast<TRITONBACKEND_MemoryManager*>(&no_gpus)
                         : reinterpret_cast<TRITONBACKEND_MemoryManager*>(gpus);
}

nereid::memory::Gpus* FromManager(TRITONBACKEND_MemoryManager* manager) {
  return reinterpret_cast<char*>(manager) == &no_gpus
             ? nullptr
             : reinterpret_cast<nereid::memory::Gpus*>(manager);
}

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

TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend* backend,
                                                       TRITONBACKEND_MemoryManager** manager) {
  *manager = ToManager(FromHandle(backend)->gpus());
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

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager* manager,
                                                        void** buffer,
                                                        const TRITONSERVER_MemoryType memory_type,
                                                        const int64_t memory_type_id,
                                                        const uint64_t byte_size) {
  return RunApiCall([&]() -> Status {
    *buffer = nullptr;
    const auto type = nereid::abi_objects::FromMemoryType(memory_type);
    if (!type) return nereid::base::InvalidArgumentError("unknown memory type");
    if (*type == nereid::memory::MemoryType::kCpu) {
      // At least one byte, so that null always means failure.
      *buffer = std::malloc(byte_size == 0 ? 1 : byte_size);
      return *buffer != nullptr ? OkStatus()
                                : nereid::base::UnavailableError("CPU memory allocation failed");
    }
    nereid::memory::Gpus* const gpus = FromManager(manager);
    if (gpus == nullptr) {
      // Backends then use ordinary memory.
      const bool is_pinned = *type == nereid::memory::MemoryType::kCpuPinned;
      return nereid::base::UnsupportedError(is_pinned ? "Pinned memory allocation not supported"
                                                      : "GPU memory allocation not supported");
    }
    NEREID_ASSIGN_OR_RETURN(*buffer,
                            gpus->Allocate(byte_size, {.type = *type, .id = memory_type_id}));
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager* manager,
                                                    void* buffer,
                                                    const TRITONSERVER_MemoryType memory_type,
                                                    const int64_t memory_type_id) {
  return RunApiCall([&]() -> Status {
    const auto type = nereid::abi_objects::FromMemoryType(memory_type);
    if (!type) return nereid::base::InvalidArgumentError("unknown memory type");
    if (*type == nereid::memory::MemoryType::kCpu) {
      std::free(buffer);
      return OkStatus();
    }
    nereid::memory::Gpus* const gpus = FromManager(manager);
    return gpus == nullptr ? OkStatus() : gpus->Free(buffer, {.type = *type, .id = memory_type_id});
  });
}

}  // extern "C"
#pragma GCC visibility pop
