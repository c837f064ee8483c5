// SPDX-License-Identifier: Apache-2.0
// The functions by which the server knows the ONNX Runtime backend.
#include <memory>
#include <string_view>

#include "backend_kit/error.h"
#include "nereid/backend_traits.h"
#include "onnxruntime_backend/instance.h"

using nereid::backend::EntryPoint;
using nereid::backend::Error;
using nereid::onnxruntime::CommandLine;
using nereid::onnxruntime::Environment;
using nereid::onnxruntime::Instance;
using nereid::onnxruntime::Model;

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&]() -> Error {
    TRITONSERVER_Message* config = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(backend, &config));  // stays the server's
    NEREID_KIT_ASSIGN(const std::string_view json, nereid::backend::MessageText(config));
    NEREID_KIT_ASSIGN(const CommandLine options, CommandLine::Parse(json));
    NEREID_KIT_ASSIGN(std::unique_ptr<Environment> state, Environment::Create(options));
    NEREID_KIT_TRY(TRITONBACKEND_BackendSetState(backend, state.get()));
    state.release();
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return EntryPoint([&]() -> Error {
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_BackendState(backend, &state));
    delete static_cast<Environment*>(state);
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
                      Model::Create(model, *static_cast<Environment*>(state)));
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
    TRITONBACKEND_Model* model = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    void* state = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelState(model, &state));
    NEREID_KIT_ASSIGN(std::unique_ptr<Instance> ours,
                      Instance::Create(instance, *static_cast<Model*>(state)));
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
