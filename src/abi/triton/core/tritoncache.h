// SPDX-License-Identifier: Apache-2.0
// The C API between the server and a response cache: a shared library libtritoncache_<name>.so that
// keeps responses by key.
//
// The first part is what the server offers to caches, the second what a cache exports. The rules at
// the top of tritonserver.h hold here too. An entry is a list of buffers; only CPU memory is in use
// today.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONCACHE_DECLSPEC: what the server exports to a cache.
// TRITONCACHE_ISPEC: what a cache may export to the server.
// The server is compiled with _COMPILING_TRITONCACHE defined, plug-ins without.
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

// The objects of this API. TRITONCACHE_Cache is the cache's own, the others are the server's.
struct TRITONCACHE_Cache;
struct TRITONCACHE_CacheEntry;
struct TRITONCACHE_Allocator;

// Version of this header. The minor number grows with additions, the major number with anything
// that can break a cache.
#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

// Gives the version of this API that the server speaks. A cache can run when `*major` equals the
// TRITONCACHE_API_VERSION_MAJOR it was compiled with and `*minor` is not below its
// TRITONCACHE_API_VERSION_MINOR. Never fails.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_ApiVersion(uint32_t* major,
                                                                       uint32_t* minor);

// Gives the number of buffers of the entry.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(
    struct TRITONCACHE_CacheEntry* entry, size_t* count);

// Appends a buffer to the entry. The entry does not own it: it must stay valid until the entry was
// copied (TRITONCACHE_Copy). Size and place are taken from `buffer_attributes`, which stays the
// caller's.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(
    struct TRITONCACHE_CacheEntry* entry, void* base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

// Gives buffer `index`, counted from 0. It is lent for as long as the entry is, that is until the
// cache function that received the entry returns. Size and place are written to
// `buffer_attributes`, which the caller made. INVALID_ARG when the index is out of range.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(
    struct TRITONCACHE_CacheEntry* entry, size_t index, void** base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

// Replaces buffer `index`, counted from 0, by `new_base`, for instance memory of the cache that the
// server is to fill. The entry does not own it. `buffer_attributes` may be null to keep size and
// place. INVALID_ARG when the index is out of range.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(
    struct TRITONCACHE_CacheEntry* entry, size_t index, void* new_base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

// Copies between the buffers of `entry` and the server's: into the cache's buffers during an
// insertion, out of them during a look-up. Call it once the entry's buffers are set, while the
// cache keeps them from changing.
TRITONCACHE_DECLSPEC struct TRITONSERVER_Error* TRITONCACHE_Copy(
    struct TRITONCACHE_Allocator* allocator, struct TRITONCACHE_CacheEntry* entry);

// What a cache exports; all four functions are required. Insertions and look-ups come from many
// threads at once.

// Makes a cache from `config`, the text of the server option. The server passes it to the other
// functions and at last to TRITONCACHE_CacheFinalize. An error fails the start of the server.
TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheInitialize(
    struct TRITONCACHE_Cache** cache, const char* config);

// Frees a cache. No other call for it is running.
TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheFinalize(
    struct TRITONCACHE_Cache* cache);

// Keeps `entry` under `key`: the cache sets buffers of its own, with the sizes of the entry's
// buffers, and then calls TRITONCACHE_Copy with `allocator`. Entry and allocator are lent for the
// call. The call should fail with ALREADY_EXISTS when the key is there, INVALID_ARG for bad
// arguments, INTERNAL otherwise.
TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheInsert(
    struct TRITONCACHE_Cache* cache, const char* key, struct TRITONCACHE_CacheEntry* entry,
    struct TRITONCACHE_Allocator* allocator);

// Finds `key`: the cache adds its buffers to `entry`, then calls TRITONCACHE_Copy with `allocator`.
// Entry and allocator are lent for the call. Should fail with NOT_FOUND when the key is not there,
// INVALID_ARG for bad arguments, INTERNAL otherwise.
TRITONCACHE_ISPEC struct TRITONSERVER_Error* TRITONCACHE_CacheLookup(
    struct TRITONCACHE_Cache* cache, const char* key, struct TRITONCACHE_CacheEntry* entry,
    struct TRITONCACHE_Allocator* allocator);

#ifdef __cplusplus
}  // extern "C"
#endif
