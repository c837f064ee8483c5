// SPDX-License-Identifier: Apache-2.0
// A cache of one entry, whatever the key, that misbehaves according to its configuration (one word
// in it): "flip" changes a byte of the result, "cut" returns less, "two" returns two buffers,
// "nothing" finds everything and copies nothing, "twice" copies twice, "gpu" claims that its memory
// is a GPU's, "fail" fails to start.
#include <cstring>
#include <string>
#include <vector>

#include "triton/core/tritoncache.h"

namespace {

// The object behind TRITONCACHE_Cache.
struct OddCache {
  std::string manner;
  std::vector<char> bytes;

  bool Is(const char* word) const { return manner.find(word) != std::string::npos; }
};

OddCache* FromHandle(TRITONCACHE_Cache* cache) { return reinterpret_cast<OddCache*>(cache); }

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONCACHE_CacheInitialize(TRITONCACHE_Cache** cache, const char* config) {
  auto* made = new OddCache{config, {}};
  if (made->Is("fail")) {
    delete made;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no cache today");
  }
  *cache = reinterpret_cast<TRITONCACHE_Cache*>(made);
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheFinalize(TRITONCACHE_Cache* cache) {
  delete FromHandle(cache);
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheInsert(TRITONCACHE_Cache* cache, const char*,
                                            TRITONCACHE_CacheEntry* entry,
                                            TRITONCACHE_Allocator* allocator) {
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRITONSERVER_BufferAttributesNew(&attributes);
  void* base = nullptr;
  size_t size = 0;
  TRITONSERVER_Error* error = TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes);
  if (error == nullptr) error = TRITONSERVER_BufferAttributesByteSize(attributes, &size);
  TRITONSERVER_BufferAttributesDelete(attributes);
  if (error != nullptr) return error;
  std::vector<char>& bytes = FromHandle(cache)->bytes;
  bytes.assign(size, 0);
  error = TRITONCACHE_CacheEntrySetBuffer(entry, 0, bytes.data(), nullptr);
  return error != nullptr ? error : TRITONCACHE_Copy(allocator, entry);
}

TRITONSERVER_Error* TRITONCACHE_CacheLookup(TRITONCACHE_Cache* cache, const char*,
                                            TRITONCACHE_CacheEntry* entry,
                                            TRITONCACHE_Allocator* allocator) {
  const OddCache& odd = *FromHandle(cache);
  if (odd.bytes.empty()) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "nothing here");
  if (odd.Is("nothing")) return nullptr;
  std::vector<char> bytes = odd.bytes;
  if (odd.Is("flip")) bytes[bytes.size() / 2] ^= 1;
  if (odd.Is("cut")) bytes.resize(bytes.size() - 1);
  TRITONSERVER_BufferAttributes* attributes = nullptr;
  TRITONSERVER_BufferAttributesNew(&attributes);
  TRITONSERVER_BufferAttributesSetByteSize(attributes, bytes.size());
  if (odd.Is("gpu")) {
    TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_GPU);
  }
  TRITONSERVER_Error* error = nullptr;
  for (int i = odd.Is("two") ? 0 : 1; i < 2 && error == nullptr; ++i) {
    error = TRITONCACHE_CacheEntryAddBuffer(entry, bytes.data(), attributes);
  }
  TRITONSERVER_BufferAttributesDelete(attributes);
  if (error == nullptr && odd.Is("twice")) error = TRITONCACHE_Copy(allocator, entry);
  return error != nullptr ? error : TRITONCACHE_Copy(allocator, entry);
}

}  // extern "C"
