// SPDX-License-Identifier: Apache-2.0
// An addition of Nereid's to the cache API: what a cache promises about itself beyond the
// TRITONCACHE contract, so that the server may take shorter paths. A cache that exports nothing of
// this header is used exactly as the TRITONCACHE contract says; a server that does not know this
// header ignores the symbol.
#pragma once

#include <stdint.h>

#include "triton/core/tritoncache.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bits of the set that NEREIDCACHE_Traits returns. The server ignores bits it does not know.
typedef enum NEREIDCACHE_trait_enum {
  // Keys and entries stay in the memory of this process, and an entry comes back unchanged. The
  // server may then use keys that are valid in this process only, which takes a fraction of the
  // time, and need not check whether entries were damaged on the way. It looks up and inserts on
  // the threads that receive requests and execute models. For any other cache it has threads of
  // its own, because such a cache may wait for another process.
  NEREIDCACHE_TRAIT_IN_PROCESS = 1
} NEREIDCACHE_Trait;

// Optional. Returns the cache's traits as a bitwise-or of NEREIDCACHE_Trait values, 0 for none.
// Called once, before TRITONCACHE_CacheInitialize. Must not fail and must not call back into the
// server.
TRITONCACHE_ISPEC uint32_t NEREIDCACHE_Traits(void);

#ifdef __cplusplus
}  // extern "C"
#endif
