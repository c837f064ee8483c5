// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/repo_agent.cc and model_lifecycle.cc.
#include "repoagent_host/agents.h"

#include <filesystem>
#include <vector>

#include "base/log.h"
#include "config/paths.h"
#include "repoagent_host/agent_model.h"

namespace nereid::repoagent_host {
namespace {

// The agents of one load of a model, in the order of the configuration.
class AgentChain final : public repository::ModelFiles {
 public:
  explicit AgentChain(std::shared_ptr<repository::ModelFiles> files) : files_(std::move(files)) {}

  ~AgentChain() override {
    if (is_unloading_) TellBackwards(TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
    // Destroyed in reverse order, because an agent's folder may contain the files that the next one
    // works on.
    while (!models_.empty()) models_.pop_back();
  }

  base::Status Add(std::shared_ptr<AgentLibrary> agent, AgentModelOptions options) {
    NEREID_ASSIGN_OR_RETURN(std::unique_ptr<AgentModel> model,
                            AgentModel::Create(std::move(agent), std::move(options)));
    NEREID_RETURN_IF_ERROR(model->Act(TRITONREPOAGENT_ACTION_LOAD));
    if (model->options().location.empty()) {
      return base::InternalError("Model repository location is not set");
    }
    models_.push_back(std::move(model));
    return base::OkStatus();
  }
  const AgentModelOptions& last() const { return models_.back()->options(); }

  void OnLoaded() override {
    TellBackwards(TRITONREPOAGENT_ACTION_LOAD_COMPLETE);
    if (files_ != nullptr) files_->OnLoaded();
  }
  void OnLoadFailed() override {
    TellBackwards(TRITONREPOAGENT_ACTION_LOAD_FAIL);
    if (files_ != nullptr) files_->OnLoadFailed();
  }
  void OnUnloading() override {
    if (is_unloading_) return;
    is_unloading_ = true;
    for (const auto& model : models_) {
      if (!Tell(*model, TRITONREPOAGENT_ACTION_UNLOAD)) break;
    }
    if (files_ != nullptr) files_->OnUnloading();
  }

 private:
  // An error stops the chain; the destructors of the other agents send the action later.
  void TellBackwards(TRITONREPOAGENT_ActionType action) {
    for (auto it = models_.rbegin(); it != models_.rend(); ++it) {
      if (!Tell(**it, action)) break;
    }
  }
  static bool Tell(AgentModel& model, TRITONREPOAGENT_ActionType action) {
    const base::Status status = model.Act(action);
    if (status.ok()) return true;
    NEREID_LOG(kError, "Agent model returns error on {}: {}", ActionName(action),
               status.ToString());
    return false;
  }

  const std::shared_ptr<repository::ModelFiles>
      files_;  // the owner of the model's files; may be null
  std::vector<std::unique_ptr<AgentModel>> models_;
  bool is_unloading_ = false;
};

}  // namespace

base::Result<std::shared_ptr<AgentLibrary>> Agents::Find(const std::string& name) {
  const std::string file = "libtritonrepoagent_" + name + ".so";
  const std::string path = config::JoinPath(config::JoinPath(directory_, name), file);
  std::error_code error;
  // A name that is not a single path component could load a library from anywhere.
  if (!config::ValidateModelName(name).ok() || !std::filesystem::is_regular_file(path, error)) {
    return base::InvalidArgumentError("unable to find '" + file + "' for repo agent '" + name +
                                      "', searched: " + directory_);
  }
  base::MutexLock lock(opening_);
  std::weak_ptr<AgentLibrary>& known = agents_[name];
  std::shared_ptr<AgentLibrary> agent = known.lock();
  if (agent != nullptr) return agent;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  NEREID_ASSIGN_OR_RETURN(agent,
                          AgentLibrary::Load(error ? path : absolute.lexically_normal().string()));
  known = agent;
  return agent;
}

base::Result<repository::LocalFolder> Agents::Load(const config::ModelConfig& config,
                                                   repository::LocalFolder folder,
                                                   const ReadConfig& read_config) {
  auto chain = std::make_shared<AgentChain>(std::move(folder.files));
  AgentModelOptions options;
  options.location = std::move(folder.path);
  options.config = config;
  if (!config.model_repository_agents) {
    return repository::LocalFolder{std::move(options.location), std::move(chain)};
  }
  bool is_first = true;
  for (const config::RepositoryAgent& agent : *config.model_repository_agents) {
    NEREID_ASSIGN_OR_RETURN(std::shared_ptr<AgentLibrary> library, Find(agent.name));
    if (!is_first) options.config = read_config(options.location);
    is_first = false;
    options.parameters.assign(agent.parameters.begin(), agent.parameters.end());
    NEREID_RETURN_IF_ERROR(chain->Add(std::move(library), options));
    options.type = chain->last().type;
    options.location = chain->last().location;
  }
  return repository::LocalFolder{std::move(options.location), std::move(chain)};
}

}  // namespace nereid::repoagent_host
