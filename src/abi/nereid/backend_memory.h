// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: the data of an input in host memory, wherever it is.
// The function declared here is null in a server that does not have it, so a backend that also runs
// in other servers compares it with null first.
#pragma once

#include <stdint.h>

#include "nereid/backend_outputs.h"
#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Copies all data of `input` to `buffer`, which is `byte_size` bytes of host memory. Buffers of the
// input that are in the memory of a GPU are copied by the server's CUDA driver; complete on return.
// Fails if the data has more or less than `byte_size` bytes, or the driver fails.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_InputCopy(
    struct TRITONBACKEND_Input* input, void* buffer, uint64_t byte_size) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
