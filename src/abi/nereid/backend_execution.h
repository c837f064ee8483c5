// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: executions in two halves, for backends whose models
// run in another process or on a device. The server begins one on the thread that received the
// request, and ends it on the instance's own thread only if it takes long, so that a quick one
// costs no change of threads. A server that does not know this header calls
// TRITONBACKEND_ModelInstanceExecute.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Optional, with NEREIDBACKEND_ModelInstanceEnd. As TRITONBACKEND_ModelInstanceExecute, but on any
// thread, and waiting for no longer than about `patience_ns` for what it does not compute itself.
// `is_over` says whether every request was answered and released, or is the model's to answer
// later; otherwise the server calls NEREIDBACKEND_ModelInstanceEnd next, and nothing else of the
// instance's executions before that has returned. With an error, the requests are still the
// server's, as with TRITONBACKEND_ModelInstanceExecute. Called for an instance that executed
// quickly before.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelInstanceBegin(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request** requests,
    const uint32_t request_count, uint64_t patience_ns, bool* is_over);

// Waits for the rest of what was begun, on the thread that executes the instance.
TRITONBACKEND_ISPEC void NEREIDBACKEND_ModelInstanceEnd(
    struct TRITONBACKEND_ModelInstance* instance);

#ifdef __cplusplus
}  // extern "C"
#endif
