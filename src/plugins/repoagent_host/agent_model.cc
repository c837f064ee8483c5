// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/repo_agent.cc.
#include "repoagent_host/agent_model.h"

#include <stdlib.h>

#include <filesystem>

#include "base/log.h"
#include "base/temporary_folder.h"

namespace nereid::repoagent_host {
namespace {

// The action that must precede `action`.
TRITONREPOAGENT_ActionType Before(TRITONREPOAGENT_ActionType action) {
  switch (action) {
    case TRITONREPOAGENT_ACTION_UNLOAD:
      return TRITONREPOAGENT_ACTION_LOAD_COMPLETE;
    case TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE:
      return TRITONREPOAGENT_ACTION_UNLOAD;
    default:
      return TRITONREPOAGENT_ACTION_LOAD;
  }
}

}  // namespace

const char* ActionName(TRITONREPOAGENT_ActionType action) {
  switch (action) {
    case TRITONREPOAGENT_ACTION_LOAD:
      return "TRITONREPOAGENT_ACTION_LOAD";
    case TRITONREPOAGENT_ACTION_LOAD_COMPLETE:
      return "TRITONREPOAGENT_ACTION_LOAD_COMPLETE";
    case TRITONREPOAGENT_ACTION_LOAD_FAIL:
      return "TRITONREPOAGENT_ACTION_LOAD_FAIL";
    case TRITONREPOAGENT_ACTION_UNLOAD:
      return "TRITONREPOAGENT_ACTION_UNLOAD";
    case TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE:
      return "TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE";
  }
  return "Unknown TRITONREPOAGENT_ActionType";
}

base::Result<std::unique_ptr<AgentModel>> AgentModel::Create(std::shared_ptr<AgentLibrary> agent,
                                                             AgentModelOptions options) {
  std::unique_ptr<AgentModel> model(new AgentModel(std::move(agent), std::move(options)));
  NEREID_RETURN_IF_ERROR(model->agent_->InitializeModel(*model));
  model->is_initialized_ = true;
  return model;
}

AgentModel::~AgentModel() {
  if (told_ == TRITONREPOAGENT_ACTION_LOAD) Tell(TRITONREPOAGENT_ACTION_LOAD_FAIL);
  if (told_ == TRITONREPOAGENT_ACTION_LOAD_COMPLETE) Tell(TRITONREPOAGENT_ACTION_UNLOAD);
  if (told_ == TRITONREPOAGENT_ACTION_UNLOAD) Tell(TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
  if (is_initialized_) {
    const base::Status status = agent_->FinalizeModel(*this);
    if (!status.ok()) {
      NEREID_LOG(kError, "failed to finalize the agent of '{}': {}", options_.location,
                 status.ToString());
    }
  }
  if (acquired_.has_value()) static_cast<void>(ReleaseFolder());
}

void AgentModel::Tell(TRITONREPOAGENT_ActionType action) {
  const base::Status status = Act(action);
  if (!status.ok()) NEREID_LOG(kError, "Inform {}: {}", ActionName(action), status.ToString());
}

base::Status AgentModel::Act(TRITONREPOAGENT_ActionType action) {
  const bool is_first = action == TRITONREPOAGENT_ACTION_LOAD;
  if (!told_ && !is_first) {
    return base::InternalError(std::string("Unexpected lifecycle start state ") +
                               ActionName(action));
  }
  if (told_ && (is_first || *told_ != Before(action))) {
    return base::InternalError(std::string("Unexpected lifecycle state transition from ") +
                               ActionName(*told_) + " to " + ActionName(action));
  }
  told_ = action;
  return agent_->Act(*this, action);
}

base::Status AgentModel::SetLocation(TRITONREPOAGENT_ArtifactType type, std::string location) {
  if (told_ != TRITONREPOAGENT_ACTION_LOAD) {
    return base::InvalidArgumentError(
        std::string("location can only be updated during TRITONREPOAGENT_ACTION_LOAD, current "
                    "action type is ") +
        (told_ ? ActionName(*told_) : "not set"));
  }
  options_.type = type;
  options_.location = std::move(location);
  return base::OkStatus();
}

base::Result<const char*> AgentModel::AcquireFolder(TRITONREPOAGENT_ArtifactType type) {
  if (type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM) {
    return base::InvalidArgumentError(
        "Unexpected artifact type, expects 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM'");
  }
  if (!acquired_.has_value()) {
    NEREID_ASSIGN_OR_RETURN(acquired_, base::MakeTemporaryFolder("agent"));
  }
  return acquired_->path.c_str();
}

base::Status AgentModel::ReleaseFolder() {
  if (!acquired_.has_value()) return base::UnavailableError("No mutable location to be deleted");
  std::error_code error;
  std::filesystem::remove_all(acquired_->path, error);
  if (error) {
    NEREID_LOG(kError, "Failed to delete previously acquired location '{}': {}", acquired_->path,
               error.message());
  }
  acquired_.reset();
  return base::OkStatus();
}

}  // namespace nereid::repoagent_host
