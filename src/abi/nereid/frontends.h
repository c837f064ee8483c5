// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the in-process API: serves a server that lives in a program over HTTP
// and gRPC, exactly as the program `nereid` does. In libtritonserver.so only.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// The listeners of one server, and their threads.
struct NEREIDSERVER_Frontends;

// Listens for `server`, which must outlive the result. `flags` are `count` texts "name=value": the
// flags of the program for HTTP and gRPC without their dashes, and allow-metrics, metrics-address,
// metrics-port, min-body-rate and unix-socket-mode. Defaults are the program's, so all three
// services are on. Port 0 is any free port. Fails with INVALID_ARG for another flag or a wrong
// value, and with UNAVAILABLE if an address cannot be listened on; then nothing listens.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* NEREIDSERVER_FrontendsNew(
    struct NEREIDSERVER_Frontends** frontends, struct TRITONSERVER_Server* server,
    const char* const* flags, size_t count);

// The ports listened on; 0 for a service that is off.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* NEREIDSERVER_FrontendsPorts(
    struct NEREIDSERVER_Frontends* frontends, uint16_t* http, uint16_t* grpc, uint16_t* metrics);

// Makes the server not ready, refuses new requests and finishes those in flight, at most for the
// exit timeout of the server, of which TRITONSERVER_ServerStop has what is left. To be called once,
// before that.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* NEREIDSERVER_FrontendsStop(
    struct NEREIDSERVER_Frontends* frontends);

// To be called after TRITONSERVER_ServerStop has succeeded and before TRITONSERVER_ServerDelete. If
// the stop has failed, threads still use the listeners, and they must be left alone.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* NEREIDSERVER_FrontendsDelete(
    struct NEREIDSERVER_Frontends* frontends);

#ifdef __cplusplus
}  // extern "C"
#endif
