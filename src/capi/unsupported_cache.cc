// SPDX-License-Identifier: Apache-2.0
// Weak definitions of the server-side functions of tritoncache.h; see unsupported.h.
#include "capi/unsupported.h"
#include "triton/core/tritoncache.h"

using nereid::capi::Unsupported;

extern "C" {
#pragma GCC visibility push(default)
// clang-format off: a listing, one function after the other.

[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_ApiVersion(uint32_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry*,
    size_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry*, void*,
    TRITONSERVER_BufferAttributes*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry*, size_t,
    void**, TRITONSERVER_BufferAttributes*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry*, size_t,
    void*, TRITONSERVER_BufferAttributes*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONCACHE_Copy(TRITONCACHE_Allocator*,
    TRITONCACHE_CacheEntry*) { return Unsupported(__func__); }

// clang-format on
#pragma GCC visibility pop
}  // extern "C"
