// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: responses sent by threads that must not wait. The
// function declared here is null in a server that does not have it, so a backend that also runs in
// other servers compares it with null first.
#pragma once

#include "nereid/backend_outputs.h"
#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONBACKEND_ResponseSend for a thread that sends the responses of several requests. That
// function makes its thread wait while a client reads more slowly than a model writes, or while the
// next steps of an ensemble are busy; the responses of all other requests would wait with it.
//
// Sets `sent` to false, and does nothing, if the thread would have to wait: `response` stays the
// backend's, to be sent later, or by a thread that may wait. Otherwise this is
// TRITONBACKEND_ResponseSend, and never waits.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ResponseTrySend(
    struct TRITONBACKEND_Response* response, uint32_t send_flags, struct TRITONSERVER_Error* error,
    bool* sent) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
