// SPDX-License-Identifier: Apache-2.0
// An agent that moves models and records its calls. Parameters of the configuration:
//
//   journal  a file to which each call appends a line: "<name> <action>"
//   name     the name of the agent in the journal
//   move     copies the model, without its configuration, into a folder of the server
//   to       names another folder instead
//   config   writes "<name> config <JSON>" at LOAD
//   fail     the action that returns an error
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "triton/core/tritonrepoagent.h"

namespace {

namespace fs = std::filesystem;
using Parameters = std::map<std::string, std::string>;

constexpr const char* kActions[] = {"LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD",
                                    "UNLOAD_COMPLETE"};

Parameters Read(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model) {
  Parameters parameters;
  uint32_t count = 0;
  TRITONREPOAGENT_ModelParameterCount(agent, model, &count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    const char* value = nullptr;
    TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value);
    parameters[key] = value;
  }
  return parameters;
}

void Note(const Parameters& parameters, const std::string& what) {
  const auto journal = parameters.find("journal");
  if (journal == parameters.end()) return;
  const auto name = parameters.find("name");
  std::ofstream(journal->second, std::ios::app)
      << (name == parameters.end() ? "agent" : name->second) << " " << what << "\n";
}

TRITONSERVER_Error* NoteConfig(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model,
                               const Parameters& parameters) {
  TRITONSERVER_Message* message = nullptr;
  if (TRITONSERVER_Error* error = TRITONREPOAGENT_ModelConfig(agent, model, 1, &message)) {
    return error;
  }
  const char* base = nullptr;
  size_t size = 0;
  TRITONSERVER_MessageSerializeToJson(message, &base, &size);
  Note(parameters, "config " + std::string(base, size));
  TRITONSERVER_MessageDelete(message);
  return nullptr;
}

TRITONSERVER_Error* Move(TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model) {
  TRITONREPOAGENT_ArtifactType type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
  const char* from = nullptr;
  if (auto* error = TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &from)) {
    return error;
  }
  const char* to = nullptr;
  if (auto* error = TRITONREPOAGENT_ModelRepositoryLocationAcquire(
          agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &to)) {
    return error;
  }
  std::error_code error;
  fs::copy(from, to, fs::copy_options::recursive, error);
  fs::remove(fs::path(to) / "config.pbtxt", error);
  return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                               to);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent* agent) {
  return TRITONREPOAGENT_SetState(agent, new int(0));
}

TRITONSERVER_Error* TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent* agent) {
  void* state = nullptr;
  TRITONREPOAGENT_State(agent, &state);
  delete static_cast<int*>(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent* agent,
                                                    TRITONREPOAGENT_AgentModel* model) {
  Note(Read(agent, model), "INITIALIZE");
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent* agent,
                                                  TRITONREPOAGENT_AgentModel* model) {
  Note(Read(agent, model), "FINALIZE");
  return nullptr;
}

TRITONSERVER_Error* TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent* agent,
                                                TRITONREPOAGENT_AgentModel* model,
                                                const TRITONREPOAGENT_ActionType action) {
  const Parameters parameters = Read(agent, model);
  Note(parameters, kActions[action]);
  const auto fail = parameters.find("fail");
  if (fail != parameters.end() && fail->second == kActions[action]) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "the test wants it so");
  }
  if (action != TRITONREPOAGENT_ACTION_LOAD) return nullptr;
  if (parameters.count("config") != 0) {
    if (auto* error = NoteConfig(agent, model, parameters)) return error;
  }
  if (const auto to = parameters.find("to"); to != parameters.end()) {
    return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                                 to->second.c_str());
  }
  return parameters.count("move") != 0 ? Move(agent, model) : nullptr;
}

}  // extern "C"
