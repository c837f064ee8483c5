// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_Server*: information about one model.
#include <span>
#include <string>

#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "capi/server.h"
#include "capi/version_text.h"
#include "config/print.h"
#include "service/model_json.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;
using nereid::capi::VersionText;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server* server,
                                                    const char* model_name,
                                                    const int64_t model_version, bool* ready) {
  return RunApiCall([&]() -> Status {
    *ready = false;
    NEREID_ASSIGN_OR_RETURN(*ready,
                            server->engine.IsModelReady(model_name, VersionText(model_version)));
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server* server,
                                                            const char* model_name,
                                                            const int64_t model_version,
                                                            uint32_t* flags, void** voidp) {
  return RunApiCall([&]() -> Status {
    if (voidp != nullptr) *voidp = nullptr;
    NEREID_ASSIGN_OR_RETURN(const nereid::core::ModelHandle model,
                            server->engine.WaitForModel(model_name, VersionText(model_version)));
    *flags =
        model->max_batch_size() > 0 ? TRITONSERVER_BATCH_FIRST_DIM : TRITONSERVER_BATCH_UNKNOWN;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server* server,
                                                                  const char* model_name,
                                                                  const int64_t model_version,
                                                                  uint32_t* txn_flags,
                                                                  void** voidp) {
  return RunApiCall([&]() -> Status {
    if (voidp != nullptr) *voidp = nullptr;
    *txn_flags = 0;
    NEREID_ASSIGN_OR_RETURN(const nereid::core::ModelHandle model,
                            server->engine.WaitForModel(model_name, VersionText(model_version)));
    *txn_flags = model->is_decoupled() ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server* server,
                                                     const char* model_name,
                                                     const int64_t model_version,
                                                     TRITONSERVER_Message** model_metadata) {
  return RunApiCall([&]() -> Status {
    *model_metadata = nullptr;
    NEREID_ASSIGN_OR_RETURN(const nereid::core::ModelHandle pin,
                            server->engine.WaitForModel(model_name, VersionText(model_version)));
    NEREID_ASSIGN_OR_RETURN(const nereid::service::ModelMetadata metadata,
                            server->engine.DescribeModel(model_name, VersionText(model_version)));
    *model_metadata = new TRITONSERVER_Message{nereid::service::ToJson(metadata)};
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server* server,
                                                       const char* model_name,
                                                       const int64_t model_version,
                                                       TRITONSERVER_Message** model_stats) {
  return RunApiCall([&]() -> Status {
    *model_stats = nullptr;
    NEREID_ASSIGN_OR_RETURN(const auto statistics,
                            server->engine.ReadStatistics(model_name, VersionText(model_version)));
    *model_stats = new TRITONSERVER_Message{nereid::service::ToJson(statistics)};
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerModelConfig(TRITONSERVER_Server* server,
                                                   const char* model_name,
                                                   const int64_t model_version,
                                                   const uint32_t config_version,
                                                   TRITONSERVER_Message** model_config) {
  return RunApiCall([&]() -> Status {
    *model_config = nullptr;
    NEREID_ASSIGN_OR_RETURN(const nereid::core::ModelHandle pin,
                            server->engine.WaitForModel(model_name, VersionText(model_version)));
    NEREID_ASSIGN_OR_RETURN(const auto config,
                            server->engine.GetModelConfig(model_name, VersionText(model_version)));
    NEREID_ASSIGN_OR_RETURN(std::string json, nereid::config::ToJson(*config, config_version));
    *model_config = new TRITONSERVER_Message{std::move(json)};
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
