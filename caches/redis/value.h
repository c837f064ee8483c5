// SPDX-License-Identifier: Apache-2.0
// The value of a Redis key: the buffers of an entry behind their sizes.
//
// Little-endian:  number of buffers (u32)  size of each (u64)  the bytes of all, one after the
// other
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nereid::redis_cache {

inline constexpr size_t kMostBuffers = 1024;

// A value with room for buffers of these sizes. Nothing when they are too many or too large for
// Redis, which takes 512 MiB.
std::optional<std::string> MakeValue(const std::vector<size_t>& sizes);
// Where the first buffer begins in a value of that many.
size_t ValueHeaderSize(size_t buffer_count);

// Nothing when `value` is not what MakeValue makes: it may come from anywhere.
std::optional<std::vector<size_t>> ReadValueSizes(std::span<const std::byte> value);

}  // namespace nereid::redis_cache
