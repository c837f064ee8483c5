// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the in-process API: a server that loads models when requests need
// them (the program's --model-control-mode=ondemand).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// The settings; those of the program's flags of similar names. Zeros are meaningful: no budget, no
// minimum stay, no unload of idle models. New members will be added at the end.
struct NEREIDSERVER_OnDemandSettings {
  size_t size;                 // of this struct, so that more members can be added
  uint64_t memory_budget;      // bytes of main memory for models
  uint64_t gpu_memory_budget;  // bytes of each GPU for models
  uint32_t load_wait_secs;     // how long a request waits for its model; at least 1
  uint32_t min_stay_secs;      // how long a model stays loaded at least
  uint32_t idle_secs;          // after how long without requests a model is unloaded
  const char* const* pinned;   // the names of models to load at the start and never unload
  size_t pinned_count;
};

// Chooses this mode instead of those of TRITONSERVER_ServerOptionsSetModelControlMode.
// TRITONSERVER_InferenceRequestNew then waits until the model is loaded, and the request keeps it
// loaded until it is deleted, so that TRITONSERVER_ServerInferAsync never waits. Copies `settings`.
// Fails with INVALID_ARG if `size` or `load_wait_secs` is too small.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* NEREIDSERVER_ServerOptionsSetOnDemand(
    struct TRITONSERVER_ServerOptions* options,
    const struct NEREIDSERVER_OnDemandSettings* settings);

#ifdef __cplusplus
}  // extern "C"
#endif
