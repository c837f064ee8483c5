// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: outputs whose bytes stay where the backend has them.
// A backend that runs in another server, too, looks whether the function is there: it is null where
// the server does not have it.
#pragma once

#include <stdint.h>

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_COMPILING_TRITONBACKEND) || defined(_MSC_VER)
#define NEREIDBACKEND_OPTIONAL
#else
#define NEREIDBACKEND_OPTIONAL __attribute__((__weak__))
#endif

// Called once nothing reads the bytes any more, on any thread, perhaps before the function that
// they were given to returns.
typedef void (*NEREIDBACKEND_ReleaseFn_t)(void* user);

// Gives `output`, a new one that has no buffer, `byte_size` bytes of CPU memory. They must not
// change until `release` is called with `user`, which happens once, also if this fails. In place of
// TRITONBACKEND_OutputBuffer.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_OutputLend(
    struct TRITONBACKEND_Output* output, const void* buffer, uint64_t byte_size,
    NEREIDBACKEND_ReleaseFn_t release, void* user) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
