// SPDX-License-Identifier: Apache-2.0
// A response as one sequence of bytes, as cache libraries store it. The bytes may come from another
// machine or another release, so they identify themselves and are validated before use.
//
// Little-endian:  magic (8 bytes)  total size (u64)  XXH3 of all that follows (u64)
//                 key text  counts of outputs and parameters (u32 each)
//                 outputs:     name  type (u8)  rank (u32)  dims (i64 each)  size (u64)  data
//                 parameters:  name  kind (u8)  value: text, or 8 bytes
// A text is its length (u32) and its bytes.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "core/model.h"
#include "core/response.h"
#include "core/response_cache.h"

namespace nereid::cache_host {

// Whether the cache is trusted to return bytes unchanged. If so, the checksum field is zero and
// ignored: computing it takes longer than copying the entry.
enum class Integrity { kChecksum, kTrusted };

// Returns the size of the result of PackResponse. Fails if `response` cannot be cached: an error,
// or with outputs outside of CPU memory or without buffers.
base::Result<size_t> PackedSize(const core::CacheKey& key, const core::Response& response);
// Packs a response. REQUIRES: `to` has exactly PackedSize bytes.
void PackResponse(const core::CacheKey& key, const core::Response& response,
                  std::span<std::byte> to, Integrity integrity = Integrity::kChecksum);

// Checks that `packed` is complete, was stored under `key` and fits `model`: outputs of the model,
// of the right types, each with exactly the bytes that its shape requires. Reads nothing outside
// `packed`, whatever its content.
base::Status CheckPackedResponse(const core::CacheKey& key, std::span<const std::byte> packed,
                                 const core::Model& model,
                                 Integrity integrity = Integrity::kChecksum);
// Adds the content of `packed` to `response`. Fails if outputs cannot be allocated. REQUIRES:
// CheckPackedResponse succeeded.
base::Status UnpackResponse(std::span<const std::byte> packed, core::Response& response);

}  // namespace nereid::cache_host
