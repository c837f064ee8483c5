// SPDX-License-Identifier: Apache-2.0
// The agents of the server: opened when a model first names them, finalised when the last such
// model is gone.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "repoagent_host/agent_library.h"
#include "repository/model_agents.h"

namespace nereid::repoagent_host {

// Opens agents and runs them for models. Thread-safe.
class Agents final : public repository::ModelAgents {
 public:
  // `directory` contains a folder for each agent.
  explicit Agents(std::string directory) : directory_(std::move(directory)) {}

  base::Result<repository::LocalFolder> Load(const config::ModelConfig& config,
                                             repository::LocalFolder folder,
                                             const ReadConfig& read_config) override;

 private:
  base::Result<std::shared_ptr<AgentLibrary>> Find(const std::string& name);

  const std::string directory_;
  // Held while an agent is opened and initialised, so that this happens once. Actions are sent
  // without it.
  base::Mutex opening_;
  std::map<std::string, std::weak_ptr<AgentLibrary>> agents_ NEREID_GUARDED_BY(opening_);
};

}  // namespace nereid::repoagent_host
