// SPDX-License-Identifier: Apache-2.0
// The C API between the server and a repository agent: a shared library
// libtritonrepoagent_<name>.so that may check or replace a model's files while it is loaded.
//
// The first part is what the server offers to agents, the second what an agent may export. The
// rules at the top of tritonserver.h hold here too. What is returned belongs to the server unless
// said otherwise.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONREPOAGENT_DECLSPEC: what the server exports to an agent.
// TRITONREPOAGENT_ISPEC: what an agent may export to the server.
// The server is compiled with _COMPILING_TRITONREPOAGENT defined, plug-ins without.
#if defined(_COMPILING_TRITONREPOAGENT)
#if defined(_MSC_VER)
#define TRITONREPOAGENT_DECLSPEC __declspec(dllexport)
#define TRITONREPOAGENT_ISPEC __declspec(dllimport)
#elif defined(__GNUC__)
#define TRITONREPOAGENT_DECLSPEC __attribute__((__visibility__("default")))
#define TRITONREPOAGENT_ISPEC
#else
#define TRITONREPOAGENT_DECLSPEC
#define TRITONREPOAGENT_ISPEC
#endif
#elif defined(_MSC_VER)
#define TRITONREPOAGENT_DECLSPEC __declspec(dllimport)
#define TRITONREPOAGENT_ISPEC __declspec(dllexport)
#else
#define TRITONREPOAGENT_DECLSPEC
#define TRITONREPOAGENT_ISPEC
#endif

// The objects of this API. An Agent is a loaded library, an AgentModel one model in its care.
struct TRITONREPOAGENT_Agent;
struct TRITONREPOAGENT_AgentModel;

// Version of this header. The minor number grows with additions, the major number with anything
// that can break an agent.
#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

// Gives the version of this API that the server speaks. An agent can run when `*major` equals the
// TRITONREPOAGENT_API_VERSION_MAJOR it was compiled with and `*minor` is not below its
// TRITONREPOAGENT_API_VERSION_MINOR. Never fails.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ApiVersion(uint32_t* major,
                                                                               uint32_t* minor);

// How a model's files are found: in a folder of this machine, or at an address of a remote file
// system (such as "s3://...").
typedef enum TRITONREPOAGENT_artifacttype_enum {
  TRITONREPOAGENT_ARTIFACT_FILESYSTEM = 0,
  TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM = 1
} TRITONREPOAGENT_ArtifactType;

// What happens to a model. Its life is LOAD, LOAD_COMPLETE, UNLOAD, UNLOAD_COMPLETE, or LOAD,
// LOAD_FAIL.
typedef enum TRITONREPOAGENT_actiontype_enum {
  TRITONREPOAGENT_ACTION_LOAD = 0,
  TRITONREPOAGENT_ACTION_LOAD_COMPLETE = 1,
  TRITONREPOAGENT_ACTION_LOAD_FAIL = 2,
  TRITONREPOAGENT_ACTION_UNLOAD = 3,
  TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE = 4
} TRITONREPOAGENT_ActionType;

// Gives where the model's files are now: a path or a remote address, as `*artifact_type` says. The
// agent must not change them.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocation(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    TRITONREPOAGENT_ArtifactType* artifact_type, const char** location);

// Makes an empty temporary folder that the agent can fill. Only for
// TRITONREPOAGENT_ARTIFACT_FILESYSTEM, otherwise UNSUPPORTED. The agent gives it back with
// TRITONREPOAGENT_ModelRepositoryLocationRelease, at the latest in TRITONREPOAGENT_ModelFinalize.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char** location);

// Deletes an acquired folder with its contents.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryLocationRelease(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const char* location);

// Makes the server load the model from `location` instead. Only within TRITONREPOAGENT_ModelAction
// with TRITONREPOAGENT_ACTION_LOAD, otherwise INVALID_ARG. The files must stay as they are until
// TRITONREPOAGENT_ModelFinalize.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelRepositoryUpdate(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char* location);

// Gives the number of parameters that the model's configuration has for this agent.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelParameterCount(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model, uint32_t* count);

// Gives name and value of parameter `index`, counted from 0. INVALID_ARG when the index is out of
// range.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelParameter(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const uint32_t index, const char** parameter_name, const char** parameter_value);

// Gives the model's configuration as a message, which the agent owns; null when the model has no
// config.pbtxt. `config_version` must be 1, otherwise UNSUPPORTED.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelConfig(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const uint32_t config_version, struct TRITONSERVER_Message** model_config);

// Gives the pointer last set with TRITONREPOAGENT_ModelSetState, null at first.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelState(
    struct TRITONREPOAGENT_AgentModel* model, void** state);

// Stores a pointer of the agent's own for the model; the server never follows it.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelSetState(
    struct TRITONREPOAGENT_AgentModel* model, void* state);

// Gives the pointer last set with TRITONREPOAGENT_SetState, null at first.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_State(
    struct TRITONREPOAGENT_Agent* agent, void** state);

// Stores a pointer of the agent's own; the server never follows it.
TRITONREPOAGENT_DECLSPEC struct TRITONSERVER_Error* TRITONREPOAGENT_SetState(
    struct TRITONREPOAGENT_Agent* agent, void* state);

// What an agent exports. Only TRITONREPOAGENT_ModelAction is required.

// Called once, after the library is loaded. An error fails the models that need the agent.
TRITONREPOAGENT_ISPEC struct TRITONSERVER_Error* TRITONREPOAGENT_Initialize(
    struct TRITONREPOAGENT_Agent* agent);

// Called once, before the library is unloaded. All memory must be freed and all threads joined on
// return.
TRITONREPOAGENT_ISPEC struct TRITONSERVER_Error* TRITONREPOAGENT_Finalize(
    struct TRITONREPOAGENT_Agent* agent);

// Called when a model's life begins, before its first action. An error fails the load.
TRITONREPOAGENT_ISPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelInitialize(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model);

// Called when a model's life ends, after its last action. Acquired folders must be released and
// everything of the model freed on return.
TRITONREPOAGENT_ISPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelFinalize(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model);

// Called for each action, one at a time for a model, in parallel for different models. Return null
// for actions that do not matter to the agent. An error on TRITONREPOAGENT_ACTION_LOAD fails the
// load; on other actions it is only logged.
TRITONREPOAGENT_ISPEC struct TRITONSERVER_Error* TRITONREPOAGENT_ModelAction(
    struct TRITONREPOAGENT_Agent* agent, struct TRITONREPOAGENT_AgentModel* model,
    const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}  // extern "C"
#endif
