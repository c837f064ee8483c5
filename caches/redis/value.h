// SPDX-License-Identifier: Apache-2.0
// The value of a Redis key: the sizes and buffers of an entry.
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

inline constexpr size_t kMaxBuffers = 1024;

// Makes a value with space for buffers of these sizes. Returns nothing if they are too many, or too
// large for Redis, whose limit is 512 MiB.
std::optional<std::string> MakeValue(const std::vector<size_t>& sizes);
// Returns where the first buffer begins in a value with that many.
size_t ValueHeaderSize(size_t buffer_count);

// Returns the sizes of the buffers, or nothing if `value` was not made by MakeValue: other clients
// can write to Redis.
std::optional<std::vector<size_t>> ReadValueSizes(std::span<const std::byte> value);

}  // namespace nereid::redis_cache
