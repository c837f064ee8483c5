// SPDX-License-Identifier: Apache-2.0
// One agent's part in one load of one model: where the model is, what the agent was told so far and
// what it keeps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "config/model_config.h"
#include "repoagent_host/agent_library.h"

namespace nereid::repoagent_host {

// Which model an agent is asked about, and where its files are.
struct AgentModelOptions {
  TRITONREPOAGENT_ArtifactType type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
  std::string location;
  config::ModelConfig config;
  std::vector<std::pair<std::string, std::string>> parameters;  // of the agent in the configuration
};

// What TRITONREPOAGENT_AgentModel is. An agent hears LOAD, then LOAD_FAIL, or LOAD_COMPLETE, UNLOAD
// and UNLOAD_COMPLETE, whatever becomes of the model: the destructor tells what is missing.
// Confined to one thread at a time.
class AgentModel {
 public:
  static base::Result<std::unique_ptr<AgentModel>> Create(std::shared_ptr<AgentLibrary> agent,
                                                          AgentModelOptions options);
  // Deletes the folder that the agent acquired and did not release.
  ~AgentModel();
  AgentModel(const AgentModel&) = delete;
  AgentModel& operator=(const AgentModel&) = delete;

  // The agent's own error, or one of ours when the action cannot follow on what was told before.
  base::Status Act(TRITONREPOAGENT_ActionType action);

  // What the agent asks and says. Valid as the C API says.
  const AgentModelOptions& options() const { return options_; }
  base::Status SetLocation(TRITONREPOAGENT_ArtifactType type, std::string location);
  // An empty folder that is the agent's until it releases it; the same one when asked again.
  base::Result<const char*> AcquireFolder(TRITONREPOAGENT_ArtifactType type);
  base::Status ReleaseFolder();
  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }

 private:
  AgentModel(std::shared_ptr<AgentLibrary> agent, AgentModelOptions options)
      : agent_(std::move(agent)), options_(std::move(options)) {}

  void Tell(TRITONREPOAGENT_ActionType action);

  const std::shared_ptr<AgentLibrary> agent_;
  AgentModelOptions options_;
  std::optional<base::TemporaryFolder> acquired_;
  std::optional<TRITONREPOAGENT_ActionType> told_;
  bool is_initialized_ = false;
  void* state_ = nullptr;
};

// The name of an action in the C API.
const char* ActionName(TRITONREPOAGENT_ActionType action);

}  // namespace nereid::repoagent_host
