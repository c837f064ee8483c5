// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <algorithm>
#include <cstring>

namespace nereid::memory {
namespace {

constexpr size_t kBlockBytes = 4096 - base::kBufferOverhead;

}  // namespace

std::byte* Arena::AllocateInBlock(size_t size) {
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

}  // namespace nereid::memory
