// SPDX-License-Identifier: Apache-2.0
#include "repoagent_host/agent_library.h"

#include "abi_objects/error.h"
#include "base/log.h"

namespace nereid::repoagent_host {

using abi_objects::CallPlugin;

base::Result<std::shared_ptr<AgentLibrary>> AgentLibrary::Load(const std::string& path) {
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<base::SharedLibrary> file,
                          base::SharedLibrary::Open(path));
  const std::shared_ptr<AgentLibrary> agent(new AgentLibrary(std::move(file)));
  const base::SharedLibrary& library = *agent->library_;
  EntryPoints& entry = agent->entry_points_;
  entry.initialize = library.Find<EntryPoints::AgentFunction>("TRITONREPOAGENT_Initialize");
  entry.finalize = library.Find<EntryPoints::AgentFunction>("TRITONREPOAGENT_Finalize");
  entry.model_initialize =
      library.Find<EntryPoints::ModelFunction>("TRITONREPOAGENT_ModelInitialize");
  entry.model_finalize = library.Find<EntryPoints::ModelFunction>("TRITONREPOAGENT_ModelFinalize");
  entry.model_action = library.Find<EntryPoints::ActionFunction>("TRITONREPOAGENT_ModelAction");
  if (entry.model_action == nullptr) {
    return base::NotFoundError(
        "unable to find required entrypoint 'TRITONREPOAGENT_ModelAction' in shared library: " +
        path);
  }
  if (entry.initialize != nullptr) {
    NEREID_RETURN_IF_ERROR(CallPlugin(entry.initialize, ToHandle(agent.get())));
  }
  agent->is_initialized_ = true;
  return agent;
}

AgentLibrary::~AgentLibrary() {
  if (!is_initialized_ || entry_points_.finalize == nullptr) return;
  const base::Status status = CallPlugin(entry_points_.finalize, ToHandle(this));
  if (!status.ok()) {
    NEREID_LOG(kError, "failed to finalize agent {}: {}", library_->path(), status.ToString());
  }
}

base::Status AgentLibrary::InitializeModel(AgentModel& model) {
  if (entry_points_.model_initialize == nullptr) return base::OkStatus();
  return CallPlugin(entry_points_.model_initialize, ToHandle(this), ToHandle(&model));
}

base::Status AgentLibrary::FinalizeModel(AgentModel& model) {
  if (entry_points_.model_finalize == nullptr) return base::OkStatus();
  return CallPlugin(entry_points_.model_finalize, ToHandle(this), ToHandle(&model));
}

base::Status AgentLibrary::Act(AgentModel& model, TRITONREPOAGENT_ActionType action) {
  return CallPlugin(entry_points_.model_action, ToHandle(this), ToHandle(&model), action);
}

}  // namespace nereid::repoagent_host
