// SPDX-License-Identifier: Apache-2.0
// Divides one range of memory among many users. The memory itself is never touched, so that it may
// be that of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace nereid::memory {

// A pool over a range of addresses. Thread-safe. Both operations take logarithmic time.
class MemoryPool {
 public:
  // What cuMemAlloc promises; kernels rely on it.
  static constexpr size_t kAlignment = 256;

  // REQUIRES: `start` is a multiple of kAlignment.
  MemoryPool(uintptr_t start, size_t size);

  // Returns the address of `size` free bytes, at least one, or 0 if there is no such piece.
  uintptr_t Take(size_t size);
  // Returns false if `address` is none that Take returned and that is still taken.
  bool Give(uintptr_t address);

  size_t size() const { return size_; }
  size_t used() const;

 private:
  void AddFree(uintptr_t start, size_t size) NEREID_REQUIRES(mutex_);
  void RemoveFree(uintptr_t start, size_t size) NEREID_REQUIRES(mutex_);

  const size_t size_;
  mutable base::Mutex mutex_;
  // Neighbours among the free pieces are always joined. Both containers have the same pieces.
  std::map<uintptr_t, size_t> free_ NEREID_GUARDED_BY(mutex_);
  std::set<std::pair<size_t, uintptr_t>> by_size_ NEREID_GUARDED_BY(mutex_);
  std::unordered_map<uintptr_t, size_t> taken_ NEREID_GUARDED_BY(mutex_);
  size_t used_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::memory
