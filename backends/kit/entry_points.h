// SPDX-License-Identifier: Apache-2.0
// The functions that a server calls in a backend, for backends that consist of three classes:
//
//   struct Backend  { static Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend*); };
//   struct Model {
//     static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model*, Backend&);
//   };
//   struct Instance {
//     static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance*, Model&);
//     void Execute(TRITONBACKEND_Request** requests, uint32_t count);
//   };
//
// Execute takes ownership of the requests: it completes and releases each of them in all cases. Use
// this in one source file of the plug-in, outside any namespace:
//
//   NEREID_KIT_ENTRY_POINTS(nereid::x::Backend, nereid::x::Model, nereid::x::Instance, traits)
//
// `traits` are those of nereid/backend_traits.h, or 0.
#pragma once

#include <memory>

#include "backend_kit/handles.h"
#include "nereid/backend_traits.h"

namespace nereid::backend {

// For backends whose models share no state.
struct NoBackendState {
  static Result<std::unique_ptr<NoBackendState>> Create(TRITONBACKEND_Backend*) {
    return std::make_unique<NoBackendState>();
  }
};

// Fails for instances that are not on the CPU; `backend` names the backend in the error.
inline Error RequireCpu(TRITONBACKEND_ModelInstance* instance, const char* backend) {
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  if (kind != TRITONSERVER_INSTANCEGROUPKIND_CPU) {
    return Error::InvalidArgument(StrCat("'", backend, "' backend only supports CPU instances"));
  }
  return {};
}

// The functions that NEREID_KIT_ENTRY_POINTS exports. Each of our objects is the state of the
// server's object, which owns it.
template <typename Backend, typename Model, typename Instance>
struct EntryPoints {
  static TRITONSERVER_Error* Initialize(TRITONBACKEND_Backend* handle) {
    return EntryPoint([&]() -> Error {
      NEREID_KIT_ASSIGN(std::unique_ptr<Backend> ours, Backend::Create(handle));
      NEREID_KIT_TRY(TRITONBACKEND_BackendSetState(handle, ours.get()));
      ours.release();
      return {};
    });
  }
  static TRITONSERVER_Error* Finalize(TRITONBACKEND_Backend* handle) {
    return EntryPoint([&]() -> Error {
      NEREID_KIT_ASSIGN(Backend* const ours, State<Backend>(TRITONBACKEND_BackendState, handle));
      delete ours;
      return {};
    });
  }
  static TRITONSERVER_Error* GetBackendAttribute(TRITONBACKEND_BackendAttribute* attributes) {
    return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
  }
  static TRITONSERVER_Error* ModelInitialize(TRITONBACKEND_Model* handle) {
    return EntryPoint([&]() -> Error {
      TRITONBACKEND_Backend* backend = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_ModelBackend(handle, &backend));
      NEREID_KIT_ASSIGN(Backend* const shared, State<Backend>(TRITONBACKEND_BackendState, backend));
      NEREID_KIT_ASSIGN(std::unique_ptr<Model> ours, Model::Create(handle, *shared));
      NEREID_KIT_TRY(TRITONBACKEND_ModelSetState(handle, ours.get()));
      ours.release();
      return {};
    });
  }
  static TRITONSERVER_Error* ModelFinalize(TRITONBACKEND_Model* handle) {
    return EntryPoint([&]() -> Error {
      NEREID_KIT_ASSIGN(Model* const ours, State<Model>(TRITONBACKEND_ModelState, handle));
      delete ours;
      return {};
    });
  }
  static TRITONSERVER_Error* InstanceInitialize(TRITONBACKEND_ModelInstance* handle) {
    return EntryPoint([&]() -> Error {
      TRITONBACKEND_Model* model = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceModel(handle, &model));
      NEREID_KIT_ASSIGN(Model* const shared, State<Model>(TRITONBACKEND_ModelState, model));
      NEREID_KIT_ASSIGN(std::unique_ptr<Instance> ours, Instance::Create(handle, *shared));
      NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceSetState(handle, ours.get()));
      ours.release();
      return {};
    });
  }
  static TRITONSERVER_Error* InstanceFinalize(TRITONBACKEND_ModelInstance* handle) {
    return EntryPoint([&]() -> Error {
      NEREID_KIT_ASSIGN(Instance* const ours,
                        State<Instance>(TRITONBACKEND_ModelInstanceState, handle));
      delete ours;
      return {};
    });
  }
  static TRITONSERVER_Error* InstanceExecute(TRITONBACKEND_ModelInstance* handle,
                                             TRITONBACKEND_Request** requests, uint32_t count) {
    return EntryPoint([&]() -> Error {
      NEREID_KIT_ASSIGN(Instance* const ours,
                        State<Instance>(TRITONBACKEND_ModelInstanceState, handle));
      ours->Execute(requests, count);
      return {};
    });
  }

 private:
  template <typename Object, typename Handle>
  static Result<Object*> State(TRITONSERVER_Error* (*get)(Handle*, void**), Handle* handle) {
    void* state = nullptr;
    NEREID_KIT_TRY(get(handle, &state));
    return static_cast<Object*>(state);
  }
};

}  // namespace nereid::backend

// For backends that compute in host memory. On a machine with GPUs their models stay on the CPU
// unless a configuration asks for KIND_GPU, and tensors on GPUs are copied for them.
#define NEREID_KIT_ENTRY_POINTS(Backend, Model, Instance, traits) \
  NEREID_KIT_ENTRY_POINTS_FOR_ANY_MEMORY(                         \
      Backend, Model, Instance,                                   \
      (traits) | NEREIDBACKEND_TRAIT_HOST_TENSORS | NEREIDBACKEND_TRAIT_CPU_BY_DEFAULT)

// For backends that use GPUs, or say themselves when they do not.
#define NEREID_KIT_ENTRY_POINTS_FOR_ANY_MEMORY(Backend, Model, Instance, traits)                \
  using KitEntryPoints = nereid::backend::EntryPoints<Backend, Model, Instance>;                \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* b) {    \
    return KitEntryPoints::Initialize(b);                                                       \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* b) {      \
    return KitEntryPoints::Finalize(b);                                                         \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(                      \
      TRITONBACKEND_Backend*, TRITONBACKEND_BackendAttribute* a) {                              \
    return KitEntryPoints::GetBackendAttribute(a);                                              \
  }                                                                                             \
  NEREID_KIT_EXPORT uint32_t NEREIDBACKEND_Traits(void) { return traits; }                      \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* m) { \
    return KitEntryPoints::ModelInitialize(m);                                                  \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* m) {   \
    return KitEntryPoints::ModelFinalize(m);                                                    \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(                  \
      TRITONBACKEND_ModelInstance* i) {                                                         \
    return KitEntryPoints::InstanceInitialize(i);                                               \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(                    \
      TRITONBACKEND_ModelInstance* i) {                                                         \
    return KitEntryPoints::InstanceFinalize(i);                                                 \
  }                                                                                             \
  NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(                     \
      TRITONBACKEND_ModelInstance* i, TRITONBACKEND_Request** requests, const uint32_t count) { \
    return KitEntryPoints::InstanceExecute(i, requests, count);                                 \
  }
