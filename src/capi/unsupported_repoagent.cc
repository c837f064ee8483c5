// SPDX-License-Identifier: Apache-2.0
// Weak definitions of the server-side functions of tritonrepoagent.h; see unsupported.h.
#include "capi/unsupported.h"
#include "triton/core/tritonrepoagent.h"

using nereid::capi::Unsupported;

extern "C" {
#pragma GCC visibility push(default)
// clang-format off: a listing, one function after the other.

[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ApiVersion(uint32_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocation(TRITONREPOAGENT_Agent*,
    TRITONREPOAGENT_AgentModel*, TRITONREPOAGENT_ArtifactType*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*, TRITONREPOAGENT_ArtifactType,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent*, TRITONREPOAGENT_AgentModel*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryUpdate(TRITONREPOAGENT_Agent*,
    TRITONREPOAGENT_AgentModel*, TRITONREPOAGENT_ArtifactType,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent*,
    TRITONREPOAGENT_AgentModel*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent*,
    TRITONREPOAGENT_AgentModel*, uint32_t, const char**,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent*,
    TRITONREPOAGENT_AgentModel*, uint32_t, TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel*,
    void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_State(TRITONREPOAGENT_Agent*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent*,
    void*) { return Unsupported(__func__); }

// clang-format on
#pragma GCC visibility pop
}  // extern "C"
