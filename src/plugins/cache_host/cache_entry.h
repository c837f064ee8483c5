// SPDX-License-Identifier: Apache-2.0
// The server's side of TRITONCACHE_CacheEntry and TRITONCACHE_Allocator, which a cache library may
// use during one insertion or look-up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache_host/packed_response.h"
#include "core/response.h"
#include "core/response_cache.h"
#include "triton/core/tritoncache.h"

namespace nereid::cache_host {

// Buffers that belong to the cache library, or the sizes of buffers that it must provide. Confined
// to the thread that called the library.
struct CacheEntry {
  // A buffer of the entry, which does not own it.
  struct Buffer {
    void* base = nullptr;
    size_t byte_size = 0;
    memory::Placement where;
  };
  std::vector<Buffer> buffers;
};

// The implementation of TRITONCACHE_Copy. Confined to the same thread as the entry.
class CacheAllocator {
 public:
  virtual ~CacheAllocator() = default;
  virtual base::Status Copy(const CacheEntry& entry) = 0;
};

// For insertions: packs a response into the one buffer that the library provides.
class ResponsePacker final : public CacheAllocator {
 public:
  // `key` and `response` outlive this. `byte_size` is that of the packed response.
  ResponsePacker(const core::CacheKey& key, const core::Response& response, size_t byte_size,
                 Integrity integrity)
      : key_(key), response_(response), byte_size_(byte_size), integrity_(integrity) {}

  base::Status Copy(const CacheEntry& entry) override;

 private:
  const core::CacheKey& key_;
  const core::Response& response_;
  const size_t byte_size_;
  const Integrity integrity_;
};

// For look-ups: unpacks the one buffer that the library found into a response.
class ResponseUnpacker final : public CacheAllocator {
 public:
  ResponseUnpacker(const core::CacheKey& key, core::Response& response, Integrity integrity)
      : key_(key), response_(response), integrity_(integrity) {}

  base::Status Copy(const CacheEntry& entry) override;

  // Whether Copy succeeded.
  bool is_done() const { return is_done_; }
  // Why the library's data is not a valid response; success if it is.
  const base::Status& defect() const { return defect_; }

 private:
  const core::CacheKey& key_;
  core::Response& response_;
  const Integrity integrity_;
  bool is_done_ = false;
  base::Status defect_;
};

inline TRITONCACHE_CacheEntry* ToHandle(CacheEntry* entry) {
  return reinterpret_cast<TRITONCACHE_CacheEntry*>(entry);
}
inline CacheEntry* FromHandle(TRITONCACHE_CacheEntry* entry) {
  return reinterpret_cast<CacheEntry*>(entry);
}
inline TRITONCACHE_Allocator* ToHandle(CacheAllocator* allocator) {
  return reinterpret_cast<TRITONCACHE_Allocator*>(allocator);
}
inline CacheAllocator* FromHandle(TRITONCACHE_Allocator* allocator) {
  return reinterpret_cast<CacheAllocator*>(allocator);
}

}  // namespace nereid::cache_host
