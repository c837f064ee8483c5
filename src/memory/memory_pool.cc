// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_pool.h"

#include <algorithm>
#include <iterator>

namespace nereid::memory {

MemoryPool::MemoryPool(uintptr_t start, size_t size) : size_(size / kAlignment * kAlignment) {
  base::MutexLock lock(mutex_);
  if (size_ > 0) AddFree(start, size_);
}

size_t MemoryPool::used() const {
  base::MutexLock lock(mutex_);
  return used_;
}

void MemoryPool::AddFree(uintptr_t start, size_t size) {
  free_.emplace(start, size);
  by_size_.emplace(size, start);
}

void MemoryPool::RemoveFree(uintptr_t start, size_t size) {
  free_.erase(start);
  by_size_.erase({size, start});
}

uintptr_t MemoryPool::Take(size_t size) {
  if (size > size_) return 0;
  const size_t rounded = (std::max<size_t>(size, 1) + kAlignment - 1) / kAlignment * kAlignment;
  base::MutexLock lock(mutex_);
  const auto found = by_size_.lower_bound({rounded, 0});  // the smallest piece that is enough
  if (found == by_size_.end()) return 0;
  const auto [piece, start] = *found;
  RemoveFree(start, piece);
  if (piece > rounded) AddFree(start + rounded, piece - rounded);
  taken_.emplace(start, rounded);
  used_ += rounded;
  return start;
}

bool MemoryPool::Give(uintptr_t address) {
  base::MutexLock lock(mutex_);
  const auto found = taken_.find(address);
  if (found == taken_.end()) return false;
  uintptr_t start = address;
  size_t size = found->second;
  used_ -= size;
  taken_.erase(found);
  const auto after = free_.lower_bound(address);
  if (after != free_.begin()) {
    const auto [previous, previous_size] = *std::prev(after);
    if (previous + previous_size == start) {
      RemoveFree(previous, previous_size);
      start = previous;
      size += previous_size;
    }
  }
  if (const auto next = free_.find(start + size); next != free_.end()) {
    const auto [next_start, next_size] = *next;
    RemoveFree(next_start, next_size);
    size += next_size;
  }
  AddFree(start, size);
  return true;
}

}  // namespace nereid::memory
