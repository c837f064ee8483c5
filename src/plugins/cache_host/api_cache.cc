// SPDX-License-Identifier: Apache-2.0
// The server-side functions of tritoncache.h. Error texts follow Triton's core/src/tritoncache.cc.
#include "abi_objects/buffer_attributes.h"
#include "abi_objects/error.h"
#include "cache_host/cache_entry.h"

using nereid::abi_objects::FromMemoryType;
using nereid::abi_objects::RunApiCall;
using nereid::abi_objects::ToMemoryType;
using nereid::base::InvalidArgumentError;
using nereid::base::OkStatus;
using nereid::base::Status;
using nereid::cache_host::CacheEntry;
using nereid::cache_host::FromHandle;

namespace {

constexpr const char* kNullEntry = "entry was nullptr";
constexpr const char* kNullArgument = "entry, base, or attrs was nullptr";
constexpr const char* kBadIndex = "index was greater than count";

// Copies size and location from `attributes`.
Status ReadAttributes(const TRITONSERVER_BufferAttributes& attributes, CacheEntry::Buffer& buffer) {
  const auto type = FromMemoryType(attributes.memory_type);
  if (!type || *type == nereid::memory::MemoryType::kGpu) {
    return InvalidArgumentError("Only buffers in CPU memory are allowed in cache currently");
  }
  buffer.byte_size = attributes.byte_size;
  buffer.where = {*type, attributes.memory_type_id};
  return OkStatus();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONCACHE_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = TRITONCACHE_API_VERSION_MAJOR;
  *minor = TRITONCACHE_API_VERSION_MINOR;
  return nullptr;
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry* entry,
                                                      size_t* count) {
  return RunApiCall([&]() -> Status {
    if (entry == nullptr || count == nullptr) return InvalidArgumentError(kNullEntry);
    *count = FromHandle(entry)->buffers.size();
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryAddBuffer(
    TRITONCACHE_CacheEntry* entry, void* base, TRITONSERVER_BufferAttributes* buffer_attributes) {
  return RunApiCall([&]() -> Status {
    if (entry == nullptr || base == nullptr || buffer_attributes == nullptr) {
      return InvalidArgumentError(kNullArgument);
    }
    if (buffer_attributes->byte_size == 0) {
      return InvalidArgumentError("Buffer byte size was zero");
    }
    CacheEntry::Buffer buffer;
    buffer.base = base;
    NEREID_RETURN_IF_ERROR(ReadAttributes(*buffer_attributes, buffer));
    FromHandle(entry)->buffers.push_back(buffer);
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONCACHE_CacheEntryGetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void** base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  return RunApiCall([&]() -> Status {
    if (entry == nullptr || base == nullptr || buffer_attributes == nullptr) {
      return InvalidArgumentError(kNullArgument);
    }
    const auto& buffers = FromHandle(entry)->buffers;
    if (index >= buffers.size()) return InvalidArgumentError(kBadIndex);
    *base = buffers[index].base;
    buffer_attributes->byte_size = buffers[index].byte_size;
    buffer_attributes->memory_type = ToMemoryType(buffers[index].where.type);
    buffer_attributes->memory_type_id = buffers[index].where.id;
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONCACHE_CacheEntrySetBuffer(
    TRITONCACHE_CacheEntry* entry, size_t index, void* new_base,
    TRITONSERVER_BufferAttributes* buffer_attributes) {
  return RunApiCall([&]() -> Status {
    if (entry == nullptr) return InvalidArgumentError(kNullEntry);
    auto& buffers = FromHandle(entry)->buffers;
    if (index >= buffers.size()) return InvalidArgumentError(kBadIndex);
    CacheEntry::Buffer buffer = buffers[index];
    buffer.base = new_base;
    if (buffer_attributes != nullptr) {
      NEREID_RETURN_IF_ERROR(ReadAttributes(*buffer_attributes, buffer));
    }
    buffers[index] = buffer;
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONCACHE_Copy(TRITONCACHE_Allocator* allocator,
                                     TRITONCACHE_CacheEntry* entry) {
  return RunApiCall([&]() -> Status {
    if (allocator == nullptr || entry == nullptr) {
      return InvalidArgumentError("allocator or entry was nullptr");
    }
    return FromHandle(allocator)->Copy(*FromHandle(entry));
  });
}

}  // extern "C"
#pragma GCC visibility pop
