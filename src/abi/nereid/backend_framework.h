// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: a backend tells which framework it runs models with,
// so that `nereid doctor` can say whether it is there. A server that does not know this header
// ignores the symbol.
#pragma once

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Optional. Opens the framework, without a model, and tells its name ("ONNX Runtime"), its version,
// and the path of the library or program that was found. The texts belong to the backend and stay
// until the process ends. Fails, with `name` set all the same, if the framework cannot be opened;
// the error says what is missing and how to get it. Called in a process of its own, which ends
// afterwards; nothing else was called before, so there is no TRITONBACKEND_Backend.
TRITONBACKEND_ISPEC TRITONSERVER_Error* NEREIDBACKEND_Framework(const char** name,
                                                                const char** version,
                                                                const char** path);

#ifdef __cplusplus
}  // extern "C"
#endif
