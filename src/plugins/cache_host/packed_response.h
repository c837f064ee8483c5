// SPDX-License-Identifier: Apache-2.0
// A response as one run of bytes, as cache libraries keep it. Bytes may come back from another
// machine, perhaps from another release, so they say what they are and are believed only after a
// check.
//
// Little-endian:  magic (8 bytes)  total size (u64)  XXH3 of all that follows (u64)
//                 key text  counts of outputs and parameters (u32 each)
//                 outputs:     name  type (u8)  rank (u32)  dims (i64 each)  size (u64)  data
//                 parameters:  name  kind (u8)  value: text, or 8 bytes
// where a text is its length (u32) and its bytes.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "core/model.h"
#include "core/response.h"
#include "core/response_cache.h"

namespace nereid::cache_host {

// Whether bytes are believed to come back as they were kept. If so, the field of the checksum is
// zero and not looked at: computing it takes longer than copying the entry.
enum class Integrity { kChecksum, kTrusted };

// Bytes that PackResponse writes. An error when `response` is one that cannot be kept: failed, or
// with outputs that lie elsewhere than in CPU memory, or without their buffers.
base::Result<size_t> PackedSize(const core::CacheKey& key, const core::Response& response);
// Needs exactly PackedSize bytes in `to`.
void PackResponse(const core::CacheKey& key, const core::Response& response,
                  std::span<std::byte> to, Integrity integrity = Integrity::kChecksum);

// Success when `packed` is whole, was kept under `key` and fits `model`: outputs it has, of its
// types, each with exactly the bytes that its shape says. Reads nothing outside `packed`, whatever
// is in it.
base::Status CheckPackedResponse(const core::CacheKey& key, std::span<const std::byte> packed,
                                 const core::Model& model,
                                 Integrity integrity = Integrity::kChecksum);
// Adds what is in `packed` to `response`. Needs a successful check. Fails where outputs cannot be
// allocated.
base::Status UnpackResponse(std::span<const std::byte> packed, core::Response& response);

}  // namespace nereid::cache_host
