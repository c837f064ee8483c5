// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace nereid::memory {
namespace {

constexpr size_t kBlockBytes = 4096 - base::kBufferOverhead;

}  // namespace

std::byte* Arena::Allocate(size_t size, size_t alignment) {
  const auto address = reinterpret_cast<uintptr_t>(next_);
  const size_t skip = (alignment - address % alignment) % alignment;
  const auto left = static_cast<size_t>(end_ - next_);
  if (skip <= left && size <= left - skip) {
    std::byte* const place = next_ + skip;
    next_ = place + size;
    return place;
  }
  base::BufferRef block = base::AcquireBuffer(std::max(size, kBlockBytes));
  if (!block) return nullptr;
  std::byte* const place = block.data();
  // A block made for one large allocation must not replace a half-empty current block.
  if (size < kBlockBytes / 2) {
    next_ = place + size;
    end_ = place + block.capacity();
  }
  blocks_.push_back(std::move(block));
  return place;
}

std::string_view Arena::Copy(std::string_view text) {
  if (text.empty()) return {};
  std::byte* const place = Allocate(text.size(), 1);
  if (place == nullptr) return {};
  std::memcpy(place, text.data(), text.size());
  return {reinterpret_cast<const char*>(place), text.size()};
}

std::string_view Arena::CopyTerminated(std::string_view text) {
  if (text.empty()) return "";
  std::byte* const place = Allocate(text.size() + 1, 1);
  if (place == nullptr) return {};
  std::memcpy(place, text.data(), text.size());
  place[text.size()] = std::byte{0};
  return {reinterpret_cast<const char*>(place), text.size()};
}

void Arena::Reset() {
  blocks_.clear();
  next_ = first_;
  end_ = first_ + first_size_;
}

}  // namespace nereid::memory
