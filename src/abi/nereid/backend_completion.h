// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API, for backends that complete configurations: what the
// user wrote, and why the backend decided as it did. A function declared here is null in a server
// that does not have it, so a backend that also runs in other servers compares it with null first.
#pragma once

#include <stdbool.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sets `gives` to whether the user's configuration gives `max_batch_size`, even as 0. The JSON of
// TRITONBACKEND_ModelConfig has that field in either case.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelGivesMaxBatchSize(
    struct TRITONBACKEND_Model* model, bool* gives) NEREIDBACKEND_OPTIONAL;

// Keeps with the model version why the backend decided about `subject`, such as "batching". To be
// called in TRITONBACKEND_ModelInitialize. `json` is the text of a JSON object, which the server
// copies; a second explanation of the same subject replaces the first.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelExplain(
    struct TRITONBACKEND_Model* model, const char* subject,
    const char* json) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
