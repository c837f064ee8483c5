// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: inputs that arrive where the backend wants them. A
// backend that runs in another server, too, looks whether the function is there: it is null where
// the server does not have it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is lent: `capacity` bytes of CPU memory from an address that is a multiple of 64, and 64
// more behind them that can be read. The server writes to it until a request that is in it reaches
// the backend, if one ever does. `release` is called once with `user` when the server does not use
// the memory any more: after the request was released, or without there having been one. On any
// thread, perhaps after the model was finalized, and before the backend is.
typedef struct NEREIDBACKEND_LentInput {
  void* buffer;
  NEREIDBACKEND_ReleaseFn_t release;
  void* user;
} NEREIDBACKEND_LentInput;

// Fills `lent` with at least `byte_size` bytes. False where there is no memory to lend now; the
// server then uses its own. Called on threads that receive requests, many at the same time: it
// neither blocks nor takes long.
typedef bool (*NEREIDBACKEND_LendInputFn_t)(void* user, uint64_t byte_size,
                                            NEREIDBACKEND_LentInput* lent);

// For TRITONBACKEND_ModelInitialize. The server may ask `lend`, from then on until the model is
// finalized, for memory to receive requests of at least `least_byte_size` bytes into;
// TRITONBACKEND_ InputBuffer then gives places in it. It need not ask, an instance gets requests
// that are elsewhere all the same, and what was lent for one request never holds another.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_ModelLendInputs(
    struct TRITONBACKEND_Model* model, uint64_t least_byte_size, NEREIDBACKEND_LendInputFn_t lend,
    void* user) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
