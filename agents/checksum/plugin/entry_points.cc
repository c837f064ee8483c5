// SPDX-License-Identifier: Apache-2.0
// libtritonrepoagent_checksum.so: loads a model only if its files have the checksums in its
// configuration.
#include "backend_kit/entry_points.h"
#include "checksum_agent/file_check.h"
#include "triton/core/tritonrepoagent.h"

using nereid::backend::EntryPoint;
using nereid::backend::Error;
using nereid::backend::StrCat;

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONREPOAGENT_ModelAction(
    TRITONREPOAGENT_Agent* agent, TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ActionType action_type) {
  return EntryPoint([&]() -> Error {
    if (action_type != TRITONREPOAGENT_ACTION_LOAD) return {};
    TRITONREPOAGENT_ArtifactType type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
    const char* location = nullptr;
    NEREID_KIT_TRY(TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &location));
    if (type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM) {
      return {TRITONSERVER_ERROR_UNSUPPORTED,
              StrCat("Unsupported filesystem: ", static_cast<int>(type))};
    }
    uint32_t count = 0;
    NEREID_KIT_TRY(TRITONREPOAGENT_ModelParameterCount(agent, model, &count));
    for (uint32_t i = 0; i < count; ++i) {
      const char* key = nullptr;
      const char* value = nullptr;
      NEREID_KIT_TRY(TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value));
      Error error = nereid::checksum_agent::CheckFile(location, key, value);
      if (!error.ok()) return error;
    }
    return {};
  });
}
