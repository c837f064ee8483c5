// SPDX-License-Identifier: Apache-2.0
// The server-side functions of tritonrepoagent.h. Error texts follow Triton's
// core/src/repo_agent.cc.
#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "config/print.h"
#include "repoagent_host/agent_library.h"
#include "repoagent_host/agent_model.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::InvalidArgumentError;
using nereid::base::OkStatus;
using nereid::base::Status;
using nereid::repoagent_host::FromHandle;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONREPOAGENT_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONREPOAGENT_API_VERSION_MAJOR;
  *minor = TRITONREPOAGENT_API_VERSION_MINOR;
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    TRITONREPOAGENT_ArtifactType* artifact_type, const char** location) {
  return RunApiCall([&]() -> Status {
    const auto& options = FromHandle(model)->options();
    if (options.location.empty()) {
      return nereid::base::InternalError("Model repository location is not set");
    }
    *artifact_type = options.type;
    *location = options.location.c_str();
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char** location) {
  return RunApiCall([&]() -> Status {
    NEREID_ASSIGN_OR_RETURN(*location, FromHandle(model)->AcquireFolder(artifact_type));
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model, const char*) {
  return RunApiCall([&] { return FromHandle(model)->ReleaseFolder(); });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char* location) {
  return RunApiCall([&] { return FromHandle(model)->SetLocation(artifact_type, location); });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent*,
                                                        TRITONREPOAGENT_AgentModel* model,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(model)->options().parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent*,
                                                   TRITONREPOAGENT_AgentModel* model,
                                                   const uint32_t index,
                                                   const char** parameter_name,
                                                   const char** parameter_value) {
  return RunApiCall([&]() -> Status {
    const auto& parameters = FromHandle(model)->options().parameters;
    if (index >= parameters.size()) {
      return InvalidArgumentError("index out of range for model parameters");
    }
    *parameter_name = parameters[index].first.c_str();
    *parameter_value = parameters[index].second.c_str();
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent*,
                                                TRITONREPOAGENT_AgentModel* model,
                                                const uint32_t config_version,
                                                TRITONSERVER_Message** model_config) {
  return RunApiCall([&]() -> Status {
    *model_config = nullptr;
    NEREID_ASSIGN_OR_RETURN(
        std::string json,
        nereid::config::ToJson(FromHandle(model)->options().config, config_version));
    // Readers expect an object, even if there is no configuration.
    *model_config = new TRITONSERVER_Message{json.empty() ? "{}" : std::move(json)};
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel* model, void** state) {
  *state = FromHandle(model)->state();
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel* model, void* state) {
  FromHandle(model)->set_state(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_State(TRITONREPOAGENT_Agent* agent, void** state) {
  *state = FromHandle(agent)->state();
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent* agent, void* state) {
  FromHandle(agent)->set_state(state);
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
