// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API, for backends that complete configurations: what the
// user wrote, and why the backend decided as it did. A backend that runs in another server, too,
// looks whether a function is there: it is null where the server does not have it.
#pragma once

#include <stdbool.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether the user's configuration gives `max_batch_size`, be it 0. The JSON of
// TRITONBACKEND_ModelConfig has that field either way.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelGivesMaxBatchSize(
    struct TRITONBACKEND_Model* model, bool* gives) NEREIDBACKEND_OPTIONAL;

// For TRITONBACKEND_ModelInitialize: keeps with the model version why the backend decided about
// `subject` ("batching") as it did. `json` is an object, of which the server copies the text; a
// second explanation of one subject replaces the first.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelExplain(
    struct TRITONBACKEND_Model* model, const char* subject,
    const char* json) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
