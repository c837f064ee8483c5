// SPDX-License-Identifier: Apache-2.0
// Blocks have no header: the allocator knows their size. With a header of our own, each of the
// blocks that a session keeps for its life (tables of 1 and 4 KiB) would be of the next size class.
#include "http2/http2_memory.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace nereid::http2 {
namespace {

constexpr size_t kMinSizeLog2 = 5;

}  // namespace

// The contents of a free block.
struct Http2Memory::Block {
  Block* next;
};

Http2Memory::Http2Memory()
    : interface_{
          this,
          [](size_t size, void* self) { return static_cast<Http2Memory*>(self)->Allocate(size); },
          [](void* pointer, void* self) { static_cast<Http2Memory*>(self)->Free(pointer); },
          [](size_t count, size_t size, void* self) -> void* {
            size_t bytes;
            if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
            void* const pointer = static_cast<Http2Memory*>(self)->Allocate(bytes);
            return pointer == nullptr ? nullptr : std::memset(pointer, 0, bytes);
          },
          [](void* pointer, size_t size, void* self) {
            return static_cast<Http2Memory*>(self)->Reallocate(pointer, size);
          }} {}

Http2Memory::~Http2Memory() {
  for (FreeList& list : lists_) {
    while (Block* const block = list.head) {
      list.head = block->next;
      std::free(block);
    }
  }
}

void* Http2Memory::Allocate(size_t size) {
  const size_t log2 = std::max<size_t>(std::bit_width(size > 0 ? size - 1 : 0), kMinSizeLog2);
  const size_t index = log2 - kMinSizeLog2;
  if (index >= kClasses) return std::malloc(size);
  FreeList& list = lists_[index];
  if (Block* const block = list.head) {
    list.head = block->next;
    --list.count;
    return block;
  }
  return std::malloc(size_t{1} << log2);
}

void Http2Memory::Free(void* pointer) {
  if (pointer == nullptr) return;
  // The allocator may return more than was requested: the block counts for the class that its whole
  // size fits.
  const size_t log2 = static_cast<size_t>(std::bit_width(malloc_usable_size(pointer))) - 1;
  const size_t index = log2 - kMinSizeLog2;
  if (index >= kClasses || lists_[index].count >= kKeptPerClass) return std::free(pointer);
  auto* const block = static_cast<Block*>(pointer);
  block->next = lists_[index].head;
  lists_[index].head = block;
  ++lists_[index].count;
}

void* Http2Memory::Reallocate(void* pointer, size_t size) {
  if (pointer == nullptr) return Allocate(size);
  const size_t capacity = malloc_usable_size(pointer);
  if (size <= capacity) return pointer;
  void* const larger = Allocate(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, pointer, capacity);
  Free(pointer);
  return larger;
}

}  // namespace nereid::http2
