// SPDX-License-Identifier: Apache-2.0
// A repository agent in a shared library, libtritonrepoagent_<name>.so, made for Triton or for
// Nereid.
#pragma once

#include <memory>
#include <string>

#include "base/shared_library.h"
#include "base/status.h"
#include "triton/core/tritonrepoagent.h"

namespace nereid::repoagent_host {

class AgentModel;

// The object behind TRITONREPOAGENT_Agent. Thread-safe, as its library is by contract, except for
// the state, which the library must guard.
class AgentLibrary {
 public:
  // Opens the library at `path` and initialises the agent.
  static base::Result<std::shared_ptr<AgentLibrary>> Load(const std::string& path);
  // Finalises the agent; the library stays mapped until the process ends.
  ~AgentLibrary();
  AgentLibrary(const AgentLibrary&) = delete;
  AgentLibrary& operator=(const AgentLibrary&) = delete;

  base::Status InitializeModel(AgentModel& model);
  base::Status FinalizeModel(AgentModel& model);
  base::Status Act(AgentModel& model, TRITONREPOAGENT_ActionType action);

  void* state() const { return state_; }
  void set_state(void* state) { state_ = state; }

 private:
  // The functions that an agent's library exports.
  struct EntryPoints {
    using AgentFunction = TRITONSERVER_Error*(TRITONREPOAGENT_Agent*);
    using ModelFunction = TRITONSERVER_Error*(TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*);
    using ActionFunction = TRITONSERVER_Error*(TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*,
                                               TRITONREPOAGENT_ActionType);

    AgentFunction* initialize = nullptr;
    AgentFunction* finalize = nullptr;
    ModelFunction* model_initialize = nullptr;
    ModelFunction* model_finalize = nullptr;
    ActionFunction* model_action = nullptr;  // the only required function
  };

  explicit AgentLibrary(std::unique_ptr<base::SharedLibrary> library)
      : library_(std::move(library)) {}

  const std::unique_ptr<base::SharedLibrary> library_;
  EntryPoints entry_points_;     // constant once loaded
  bool is_initialized_ = false;  // constant once loaded
  void* state_ = nullptr;
};

inline TRITONREPOAGENT_Agent* ToHandle(AgentLibrary* agent) {
  return reinterpret_cast<TRITONREPOAGENT_Agent*>(agent);
}
inline AgentLibrary* FromHandle(TRITONREPOAGENT_Agent* agent) {
  return reinterpret_cast<AgentLibrary*>(agent);
}
inline TRITONREPOAGENT_AgentModel* ToHandle(AgentModel* model) {
  return reinterpret_cast<TRITONREPOAGENT_AgentModel*>(model);
}
inline AgentModel* FromHandle(TRITONREPOAGENT_AgentModel* model) {
  return reinterpret_cast<AgentModel*>(model);
}

}  // namespace nereid::repoagent_host
