// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: inputs that arrive in the backend's own memory. The
// function declared here is null in a server that does not have it, so a backend that also runs in
// other servers compares it with null first.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

// Memory that a backend lends to the server.
//
// `buffer` is CPU memory of at least the size that was asked for. Its address is a multiple of 64,
// and 64 more bytes behind it can be read. The server writes to the memory until the request that
// it holds reaches the backend, if one ever does. When the server no longer uses the memory, it
// calls `release` once with `user`: after the request was released, or without any request having
// reached the backend. That call may come on any thread, and even after the model was finalized,
// but before the backend is.
typedef struct NEREIDBACKEND_LentInput {
  void* buffer;
  NEREIDBACKEND_ReleaseFn_t release;
  void* user;
} NEREIDBACKEND_LentInput;

// Fills `lent` with memory of at least `byte_size` bytes and returns true. Returns false if there
// is no memory to lend now; the server then uses its own. The server calls it on the threads that
// receive requests, on several at the same time, so it must neither block nor take long.
typedef bool (*NEREIDBACKEND_LendInputFn_t)(void* user, uint64_t byte_size,
                                            NEREIDBACKEND_LentInput* lent);

// Offers to lend memory for the inputs of `model`. To be called in TRITONBACKEND_ModelInitialize.
// From then on until the model is finalized, the server may call `lend` with `user` for memory into
// which it receives requests of at least `least_byte_size` bytes; TRITONBACKEND_InputBuffer then
// returns addresses in that memory. The server need not use the offer: instances also get requests
// that are elsewhere. Memory lent for one request never holds another.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelLendInputs(
    struct TRITONBACKEND_Model* model, uint64_t least_byte_size, NEREIDBACKEND_LendInputFn_t lend,
    void* user) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
