// SPDX-License-Identifier: Apache-2.0
// The functions by which the server knows the identity backend.
#include "backend_kit/error.h"
#include "identity_backend/model.h"
#include "nereid/backend_traits.h"

using nereid::backend::EntryPoint;
using nereid::backend::Error;
using nereid::identity::BackendState;
using nereid::identity::Instance;
using nereid::identity::Model;

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&]() -> Error {
    auto state = BackendState::Create();
    NEREID_KIT_TRY(TRITONBACKEND_BackendSetState(backend, state.get()));
    state.release();
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&]() -> Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_BackendState(backend, &state));
    delete static_cast<BackendState*>(state);
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(
    TRITONBACKEND_Backend*, TRITONBACKEND_BackendAttribute* attributes) {
  return EntryPoint([&] {
    return Error(
        TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
  });
}

NEREID_KIT_EXPORT uint32_t NEREIDBACKEND_Traits(void) {
  return NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS;
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return EntryPoint([&]() -> Error {
    TRITONBACKEND_Backend* backend = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelBackend(model, &backend));
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_BackendState(backend, &state));
    NEREID_KIT_ASSIGN(std::unique_ptr<Model> ours,
                      Model::Create(model, *static_cast<BackendState*>(state)));
    NEREID_KIT_TRY(TRITONBACKEND_ModelSetState(model, ours.get()));
    ours.release();
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return EntryPoint([&]() -> Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelState(model, &state));
    delete static_cast<Model*>(state);
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&]() -> Error {
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(instance, &kind));
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_CPU) {
      return Error::InvalidArgument("'identity' backend only supports CPU instances");
    }
    TRITONBACKEND_Model* model = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelState(model, &state));
    auto ours = std::make_unique<Instance>(instance, *static_cast<Model*>(state));
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceSetState(instance, ours.get()));
    ours.release();
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    TRITONBACKEND_ModelInstance* instance) {
  return EntryPoint([&]() -> Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    delete static_cast<Instance*>(state);
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
    const uint32_t request_count) {
  return EntryPoint([&]() -> Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    static_cast<Instance*>(state)->Execute(requests, request_count);
    return {};
  });
}
