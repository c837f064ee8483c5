// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: reading mapped files that others may cut off
// meanwhile. An access to a page of a mapping that lies behind the end of its file raises SIGBUS,
// which ends the process; in a guarded range it finds zeros instead, and the guard says so. A
// backend that runs in another server, too, looks whether the functions are there: they are null
// where it has none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NEREIDBACKEND_MemoryGuard NEREIDBACKEND_MemoryGuard;

// Guards a whole mapping: `begin` is where it begins, `byte_size` its length. The caller owns
// `guard` and deletes it before the mapping ends.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardNew(
    NEREIDBACKEND_MemoryGuard** guard, void* begin, uint64_t byte_size) NEREIDBACKEND_OPTIONAL;
// Whether a page of the range was missing when somebody read it: what was read from the range then
// means nothing.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardIsBroken(
    NEREIDBACKEND_MemoryGuard* guard, bool* is_broken) NEREIDBACKEND_OPTIONAL;
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardDelete(
    NEREIDBACKEND_MemoryGuard* guard) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
