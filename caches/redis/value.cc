// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/value.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace nereid::redis_cache {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr size_t kMaxBytes = size_t{512} << 20;

}  // namespace

size_t ValueHeaderSize(size_t buffer_count) {
  return sizeof(uint32_t) + buffer_count * sizeof(uint64_t);
}

std::optional<std::string> MakeValue(const std::vector<size_t>& sizes) {
  if (sizes.empty() || sizes.size() > kMaxBuffers) return std::nullopt;
  size_t total = ValueHeaderSize(sizes.size());
  for (const size_t size : sizes) {
    if (size == 0 || size > kMaxBytes || (total += size) > kMaxBytes) return std::nullopt;
  }
  std::string value(total, '\0');
  const auto count = static_cast<uint32_t>(sizes.size());
  std::memcpy(value.data(), &count, sizeof count);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint64_t size = sizes[i];
    std::memcpy(value.data() + ValueHeaderSize(i), &size, sizeof size);
  }
  return value;
}

std::optional<std::vector<size_t>> ReadValueSizes(std::span<const std::byte> value) {
  uint32_t count;
  if (value.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, value.data(), sizeof count);
  if (count == 0 || count > kMaxBuffers || value.size() < ValueHeaderSize(count)) {
    return std::nullopt;
  }
  size_t left = value.size() - ValueHeaderSize(count);
  std::vector<size_t> sizes(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t size;
    std::memcpy(&size, value.data() + ValueHeaderSize(i), sizeof size);
    if (size == 0 || size > left) return std::nullopt;
    sizes[i] = static_cast<size_t>(size);
    left -= sizes[i];
  }
  if (left != 0) return std::nullopt;
  return sizes;
}

}  // namespace nereid::redis_cache
