// SPDX-License-Identifier: Apache-2.0
// The server's side of TRITONCACHE_CacheEntry and TRITONCACHE_Allocator: what a cache library is
// lent during one insertion or look-up.
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

// Buffers that belong to the cache library, or sizes of buffers it is to bring. Confined to the
// thread that called the library.
struct CacheEntry {
  // A buffer of the entry; not owned unless the entry says so.
  struct Buffer {
    void* base = nullptr;
    size_t byte_size = 0;
    memory::Placement where;
  };
  std::vector<Buffer> buffers;
};

// What TRITONCACHE_Copy does. Confined as the entry.
class CacheAllocator {
 public:
  virtual ~CacheAllocator() = default;
  virtual base::Status Copy(const CacheEntry& entry) = 0;
};

// Insertion: packs a response into the one buffer that the library brings.
class ResponsePacker final : public CacheAllocator {
 public:
  // Both outlive this. `byte_size` is that of the packed response.
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

// Look-up: unpacks the one buffer that the library found into a response.
class ResponseUnpacker final : public CacheAllocator {
 public:
  ResponseUnpacker(const core::CacheKey& key, core::Response& response, Integrity integrity)
      : key_(key), response_(response), integrity_(integrity) {}

  base::Status Copy(const CacheEntry& entry) override;

  // Whether Copy succeeded.
  bool is_done() const { return is_done_; }
  // Why what the library found is no response; success if it is one.
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
