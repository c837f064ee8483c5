// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: outputs whose bytes stay where the backend has them.
// The function declared here is null in a server that does not have it, so a backend that also runs
// in other servers compares it with null first.
#pragma once

#include <stdint.h>

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Marks a function of the server that other servers may lack; its address is null there.
#if defined(_COMPILING_TRITONBACKEND) || defined(_MSC_VER)
#define NEREIDBACKEND_OPTIONAL
#else
#define NEREIDBACKEND_OPTIONAL __attribute__((__weak__))
#endif

// Tells the backend that the server no longer uses memory of the backend's. The server calls it on
// any thread, possibly before the function that was given the memory returns.
typedef void (*NEREIDBACKEND_ReleaseFn_t)(void* user);

// Makes the `byte_size` bytes of CPU memory at `buffer` the data of `output`. Used instead of
// TRITONBACKEND_OutputBuffer, for a new output that has no buffer yet. The bytes must not change
// until the server calls `release` with `user`, which happens exactly once, even if this function
// returns an error. The backend owns the memory throughout.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_OutputLend(
    struct TRITONBACKEND_Output* output, const void* buffer, uint64_t byte_size,
    NEREIDBACKEND_ReleaseFn_t release, void* user) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
