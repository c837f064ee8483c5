// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONCACHE_DECLSPEC marks what the server exports to a cache, TRITONCACHE_ISPEC what a cache may
// export to the server. The server is compiled with _COMPILING_TRITONCACHE defined, plug-ins
// without.
#if defined(_COMPILING_TRITONCACHE)
#if defined(_MSC_VER)
#define TRITONCACHE_DECLSPEC __declspec(dllexport)
#define TRITONCACHE_ISPEC __declspec(dllimport)
#elif defined(__GNUC__)
#define TRITONCACHE_DECLSPEC __attribute__((__visibility__("default")))
#define TRITONCACHE_ISPEC
#else
#define TRITONCACHE_DECLSPEC
#define TRITONCACHE_ISPEC
#endif
#elif defined(_MSC_VER)
#define TRITONCACHE_DECLSPEC __declspec(dllimport)
#define TRITONCACHE_ISPEC __declspec(dllexport)
#else
#define TRITONCACHE_DECLSPEC
#define TRITONCACHE_ISPEC
#endif

struct TRITONCACHE_Cache;
struct TRITONCACHE_CacheEntry;
struct TRITONCACHE_Allocator;

#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_ApiVersion(
    uint32_t* major, uint32_t* minor);

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(
    struct TRITONCACHE_CacheEntry* entry, size_t* count);

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(
    struct TRITONCACHE_CacheEntry* entry, void* base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(
    struct TRITONCACHE_CacheEntry* entry, size_t index, void** base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(
    struct TRITONCACHE_CacheEntry* entry, size_t index, void* new_base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_Copy(
    struct TRITONCACHE_Allocator* allocator, struct TRITONCACHE_CacheEntry* entry);

TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheInitialize(
    struct TRITONCACHE_Cache** cache, const char* config);

TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheFinalize(
    struct TRITONCACHE_Cache* cache);

TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheInsert(
    struct TRITONCACHE_Cache* cache, const char* key, struct TRITONCACHE_CacheEntry* entry,
    struct TRITONCACHE_Allocator* allocator);

TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheLookup(
    struct TRITONCACHE_Cache* cache, const char* key, struct TRITONCACHE_CacheEntry* entry,
    struct TRITONCACHE_Allocator* allocator);

#ifdef __cplusplus
}  // extern "C"
#endif
