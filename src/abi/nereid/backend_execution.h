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

// Does what TRITONBACKEND_ModelInstanceExecute does, but on any thread, and waits at most about
// `patience_ns` nanoseconds for results that it does not compute itself. The server calls it only
// for an instance whose executions have been quick. Optional; a backend that exports it exports
// NEREIDBACKEND_ModelInstanceEnd as well.
//
// Sets `is_over` to true if the execution is finished: every request was responded to and released,
// or the model will respond to it later by itself. If it sets `is_over` to false, the server calls
// NEREIDBACKEND_ModelInstanceEnd next, and starts no other execution of the instance until that has
// returned. If it returns an error, the requests still belong to the server, as with
// TRITONBACKEND_ModelInstanceExecute.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelInstanceBegin(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request** requests,
    const uint32_t request_count, uint64_t patience_ns, bool* is_over);

// Waits for the execution that NEREIDBACKEND_ModelInstanceBegin left unfinished, on the instance's
// own thread, and finishes it.
TRITONBACKEND_ISPEC void NEREIDBACKEND_ModelInstanceEnd(
    struct TRITONBACKEND_ModelInstance* instance);

#ifdef __cplusplus
}  // extern "C"
#endif
