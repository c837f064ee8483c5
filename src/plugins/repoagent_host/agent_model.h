// SPDX-License-Identifier: Apache-2.0
// One agent in one load of one model: the model's location, the actions of the agent so far and the
// agent's data.
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

// The model that an agent processes, and the location of its files.
struct AgentModelOptions {
  TRITONREPOAGENT_ArtifactType type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
  std::string location;
  config::ModelConfig config;
  std::vector<std::pair<std::string, std::string>> parameters;  // of the agent in the configuration
};

// The object behind TRITONREPOAGENT_AgentModel. An agent receives LOAD and then either LOAD_FAIL,
// or LOAD_COMPLETE, UNLOAD and UNLOAD_COMPLETE, whatever happens to the model: the destructor sends
// the missing actions. Confined to one thread at a time.
class AgentModel {
 public:
  static base::Result<std::unique_ptr<AgentModel>> Create(std::shared_ptr<AgentLibrary> agent,
                                                          AgentModelOptions options);
  // Deletes the folder that the agent acquired and did not release.
  ~AgentModel();
  AgentModel(const AgentModel&) = delete;
  AgentModel& operator=(const AgentModel&) = delete;

  // Sends an action to the agent. Returns the agent's error, or one of ours if the action is not
  // valid after the previous one.
  base::Status Act(TRITONREPOAGENT_ActionType action);

  // The following are used by the C API, which also defines how long results are valid.
  const AgentModelOptions& options() const { return options_; }
  base::Status SetLocation(TRITONREPOAGENT_ArtifactType type, std::string location);
  // Returns an empty folder that the agent owns until it releases it; the same one on further
  // calls.
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
