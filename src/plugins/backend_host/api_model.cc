// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_Model*: a model version.
#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "backend_host/backend_model.h"
#include "backend_host/handles.h"
#include "backend_host/memory_use.h"
#include "config/print.h"
#include "nereid/backend_completion.h"
#include "nereid/backend_inputs.h"

using nereid::abi_objects::RunApiCall;
using nereid::backend_host::FromHandle;
using nereid::backend_host::ToHandle;
using nereid::base::Status;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = FromHandle(model)->name().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version) {
  *version = static_cast<uint64_t>(FromHandle(model)->version());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* artifact_type,
                                                  const char** location) {
  *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = FromHandle(model)->model_dir().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model,
                                              const uint32_t config_version,
                                              TRITONSERVER_Message** model_config) {
  return RunApiCall([&]() -> Status {
    *model_config = nullptr;
    NEREID_ASSIGN_OR_RETURN(std::string json,
                            nereid::config::ToJson(FromHandle(model)->config(), config_version));
    *model_config = new TRITONSERVER_Message{std::move(json)};
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model,
                                                          bool* auto_complete_config) {
  *auto_complete_config = FromHandle(model)->completes_config();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model,
                                                 const uint32_t config_version,
                                                 TRITONSERVER_Message* model_config) {
  return RunApiCall(
      [&] { return FromHandle(model)->SetConfig(model_config->json, config_version); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelServer(TRITONBACKEND_Model* model,
                                              TRITONSERVER_Server** server) {
  *server = &FromHandle(model)->libraries().server();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend) {
  *backend = ToHandle(&FromHandle(model)->library());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = FromHandle(model)->state();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  FromHandle(model)->set_state(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model* model,
                                                         TRITONSERVER_BufferAttributes** usage,
                                                         uint32_t usage_size) {
  return nereid::abi_objects::RunApiCall([&]() -> nereid::base::Status {
    NEREID_ASSIGN_OR_RETURN(auto use, nereid::backend_host::ToMemoryUse({usage, usage_size}));
    FromHandle(model)->SetMemoryUse(std::move(use));
    return {};
  });
}

TRITONSERVER_Error* NEREIDBACKEND_ModelGivesMaxBatchSize(TRITONBACKEND_Model* model, bool* gives) {
  *gives = FromHandle(model)->config().gives_max_batch_size;
  return nullptr;
}

TRITONSERVER_Error* NEREIDBACKEND_ModelExplain(TRITONBACKEND_Model* model, const char* subject,
                                               const char* json) {
  return RunApiCall([&]() -> Status { return FromHandle(model)->Explain(subject, json); });
}

TRITONSERVER_Error* NEREIDBACKEND_ModelLendInputs(TRITONBACKEND_Model* model,
                                                  uint64_t least_byte_size,
                                                  NEREIDBACKEND_LendInputFn_t lend, void* user) {
  return nereid::abi_objects::RunApiCall([&]() -> nereid::base::Status {
    return FromHandle(model)->SetInputLender(
        {.least_bytes = least_byte_size, .lend = lend, .user = user});
  });
}

}  // extern "C"
#pragma GCC visibility pop
