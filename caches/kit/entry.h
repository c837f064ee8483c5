// SPDX-License-Identifier: Apache-2.0
// The entries that the server passes to a cache, and the checks that every entry point begins with.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backend_kit/error.h"
#include "triton/core/tritoncache.h"

namespace nereid::cache {

using backend::Error;
using backend::Result;
using backend::StrCat;

// Checks that the server's version of the API supports the one that this was compiled against.
inline Error CheckApiVersion() {
  uint32_t major = 0;
  uint32_t minor = 0;
  NEREID_KIT_TRY(TRITONCACHE_ApiVersion(&major, &minor));
  if (major == TRITONCACHE_API_VERSION_MAJOR && minor >= TRITONCACHE_API_VERSION_MINOR) return {};
  return Error::Unsupported(StrCat("triton cache API version ", major, ".", minor,
                                   " does not support this cache, made for version ",
                                   TRITONCACHE_API_VERSION_MAJOR, ".",
                                   TRITONCACHE_API_VERSION_MINOR));
}

inline Error CheckArguments(const void* cache, const char* key, const void* entry,
                            const void* allocator) {
  if (cache == nullptr) return Error::InvalidArgument("cache was nullptr");
  if (entry == nullptr) return Error::InvalidArgument("cache entry was nullptr");
  if (key == nullptr) return Error::InvalidArgument("key was nullptr");
  if (allocator == nullptr) return Error::InvalidArgument("allocator was nullptr");
  return {};
}

// Attributes of a buffer in calls to the server. Thread-compatible.
class Attributes {
 public:
  static Result<Attributes> Create() {
    TRITONSERVER_BufferAttributes* made = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesNew(&made));
    return Attributes(made);
  }

  TRITONSERVER_BufferAttributes* get() const { return owned_.get(); }

 private:
  // The deleter for a unique_ptr of attributes.
  struct Delete {
    void operator()(TRITONSERVER_BufferAttributes* attributes) const {
      Error(TRITONSERVER_BufferAttributesDelete(attributes)).Ignore();
    }
  };

  explicit Attributes(TRITONSERVER_BufferAttributes* made) : owned_(made) {}

  std::unique_ptr<TRITONSERVER_BufferAttributes, Delete> owned_;
};

// Returns the sizes of the buffers that the server wants to store. Fails if one is empty or is not
// in CPU memory.
inline Result<std::vector<size_t>> BufferSizes(TRITONCACHE_CacheEntry* entry) {
  size_t count = 0;
  NEREID_KIT_TRY(TRITONCACHE_CacheEntryBufferCount(entry, &count));
  NEREID_KIT_ASSIGN(const Attributes attributes, Attributes::Create());
  std::vector<size_t> sizes(count);
  for (size_t i = 0; i < count; ++i) {
    void* base = nullptr;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    NEREID_KIT_TRY(TRITONCACHE_CacheEntryGetBuffer(entry, i, &base, attributes.get()));
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesByteSize(attributes.get(), &sizes[i]));
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesMemoryType(attributes.get(), &type));
    if (sizes[i] == 0) return Error::Internal("buffer size was zero");
    if (type == TRITONSERVER_MEMORY_GPU) {
      return Error::InvalidArgument(
          "Only input buffers in CPU memory are allowed in cache currently");
    }
  }
  return sizes;
}

// Makes the server copy its buffers, which have these sizes, one after the other to `memory`.
inline Error CopyFromServer(TRITONCACHE_CacheEntry* entry, TRITONCACHE_Allocator* allocator,
                            const std::vector<size_t>& sizes, std::byte* memory) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    NEREID_KIT_TRY(TRITONCACHE_CacheEntrySetBuffer(entry, i, memory, nullptr));
    memory += sizes[i];
  }
  return Error(TRITONCACHE_Copy(allocator, entry));
}

// Makes the server copy the buffers, which have these sizes, from `memory`, where they follow one
// another.
inline Error CopyToServer(TRITONCACHE_CacheEntry* entry, TRITONCACHE_Allocator* allocator,
                          const std::vector<size_t>& sizes, std::byte* memory) {
  NEREID_KIT_ASSIGN(const Attributes attributes, Attributes::Create());
  for (const size_t size : sizes) {
    NEREID_KIT_TRY(TRITONSERVER_BufferAttributesSetByteSize(attributes.get(), size));
    NEREID_KIT_TRY(TRITONCACHE_CacheEntryAddBuffer(entry, memory, attributes.get()));
    memory += size;
  }
  return Error(TRITONCACHE_Copy(allocator, entry));
}

// Logs one line in the server's log.
inline void Log(TRITONSERVER_LogLevel level, const char* file, int line, const std::string& text) {
  Error(TRITONSERVER_LogMessage(level, file, line, text.c_str())).Ignore();
}

}  // namespace nereid::cache
