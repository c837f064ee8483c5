// SPDX-License-Identifier: Apache-2.0
#include "net/http2_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace nereid::net {
namespace {

constexpr size_t kSmallestLog2 = 5;

}  // namespace

// Precedes every block; the two words keep what follows aligned for any type.
struct Http2Memory::Block {
  size_t capacity;
  Block* next;
  void* data() { return this + 1; }
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

Http2Memory::~Http2Memory() { Trim(); }

void Http2Memory::Trim() {
  for (FreeList& list : lists_) {
    while (Block* const block = list.head) {
      list.head = block->next;
      std::free(block);
    }
    list.count = 0;
  }
}

void* Http2Memory::Allocate(size_t size) {
  const size_t log2 = std::max<size_t>(std::bit_width(size > 0 ? size - 1 : 0), kSmallestLog2);
  const size_t index = log2 - kSmallestLog2;
  if (index < kClasses) {
    FreeList& list = lists_[index];
    if (Block* const block = list.head) {
      list.head = block->next;
      --list.count;
      return block->data();
    }
    size = size_t{1} << log2;
  }
  if (size > SIZE_MAX - sizeof(Block)) return nullptr;
  auto* const block = static_cast<Block*>(std::malloc(sizeof(Block) + size));
  if (block == nullptr) return nullptr;
  block->capacity = size;
  return block->data();
}

void Http2Memory::Free(void* pointer) {
  if (pointer == nullptr) return;
  Block* const block = static_cast<Block*>(pointer) - 1;
  if (std::has_single_bit(block->capacity)) {
    const size_t index = static_cast<size_t>(std::countr_zero(block->capacity)) - kSmallestLog2;
    if (index < kClasses && lists_[index].count < kKeptPerClass) {
      block->next = lists_[index].head;
      lists_[index].head = block;
      ++lists_[index].count;
      return;
    }
  }
  std::free(block);
}

void* Http2Memory::Reallocate(void* pointer, size_t size) {
  if (pointer == nullptr) return Allocate(size);
  const size_t capacity = (static_cast<Block*>(pointer) - 1)->capacity;
  if (size <= capacity) return pointer;
  void* const larger = Allocate(size);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, pointer, capacity);
  Free(pointer);
  return larger;
}

}  // namespace nereid::net
