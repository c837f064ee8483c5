// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the backend API: reading mapped files that other processes may
// truncate. An access to a page of a mapping beyond the end of its file raises SIGBUS, which ends
// the process. In a guarded range such an access reads zeros instead, and the guard reports it. The
// functions declared here are null in a server that does not have them, so a backend that also runs
// in other servers compares them with null first.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nereid/backend_outputs.h"

#ifdef __cplusplus
extern "C" {
#endif

// The guard of one mapping. NEREIDBACKEND_MemoryGuardIsBroken may be called on any thread.
typedef struct NEREIDBACKEND_MemoryGuard NEREIDBACKEND_MemoryGuard;

// Guards a whole mapping of `byte_size` bytes that begins at `begin`. The caller owns `guard` and
// must delete it before it removes the mapping.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardNew(
    NEREIDBACKEND_MemoryGuard** guard, void* begin, uint64_t byte_size) NEREIDBACKEND_OPTIONAL;
// Sets `is_broken` to whether a page of the range was missing when it was read. If so, nothing that
// was read from the range can be trusted.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardIsBroken(
    NEREIDBACKEND_MemoryGuard* guard, bool* is_broken) NEREIDBACKEND_OPTIONAL;
// Ends the guard. The mapping itself stays.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* NEREIDBACKEND_MemoryGuardDelete(
    NEREIDBACKEND_MemoryGuard* guard) NEREIDBACKEND_OPTIONAL;

#ifdef __cplusplus
}  // extern "C"
#endif
