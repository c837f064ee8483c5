// SPDX-License-Identifier: Apache-2.0
// A bump allocator for the small data that lives as long as one request or response: names, ids,
// parameters, little tensors. The first block is part of the arena, so a typical request allocates
// nothing; more blocks come from the buffer pool. Destructors are not run: use it only for
// trivially destructible data. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/buffer.h"

namespace nereid::memory {

// The base of all arenas, whatever the size of the first block; see the top of this file.
class Arena {
 public:
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns `size` bytes aligned to `alignment` (a power of two up to 64), valid until Reset; null
  // when memory is exhausted. Contents are unspecified.
  std::byte* Allocate(size_t size, size_t alignment = alignof(std::max_align_t)) {
    const size_t skip = -reinterpret_cast<uintptr_t>(next_) & (alignment - 1);
    const auto left = static_cast<size_t>(end_ - next_);
    if (skip > left || size > left - skip) [[unlikely]]
      return AllocateInBlock(size);
    std::byte* const place = next_ + skip;
    next_ = place + size;
    return place;
  }
  // Returns a copy of `text` that lives as long as the arena; empty when memory is exhausted.
  std::string_view Copy(std::string_view text);
  // Like Copy, followed by a zero byte that is not counted. Its data is null only when memory is
  // exhausted.
  std::string_view CopyTerminated(std::string_view text);
  // Frees everything allocated.
  void Reset() {
    if (!blocks_.empty()) [[unlikely]]
      blocks_.clear();
    next_ = first_;
    end_ = first_ + first_size_;
  }

 protected:
  // `first` is the first block, which outlives the arena.
  Arena(std::byte* first, size_t size) : first_(first), first_size_(size) { Reset(); }
  ~Arena() = default;

 private:
  std::byte* AllocateInBlock(size_t size);

  std::byte* next_;
  std::byte* end_;
  std::byte* const first_;
  const size_t first_size_;
  std::vector<base::BufferRef> blocks_;
};

// An arena with a first block of kBytes.
template <size_t kBytes>
class InlineArena final : public Arena {
 public:
  InlineArena() : Arena(inline_, kBytes) {}

 private:
  // Not a std::array, whose members may not be called before it is made.
  alignas(base::kBufferAlignment) std::byte inline_[kBytes];
};

}  // namespace nereid::memory
