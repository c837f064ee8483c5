// SPDX-License-Identifier: Apache-2.0
// gzip and deflate for both protocols: bounded inflation of request bodies, compression of replies,
// and the negotiation of the two HTTP headers.
#pragma once

#include <sys/uio.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "base/status.h"

namespace nereid::net {

enum class Compression : uint8_t { kIdentity, kGzip, kDeflate };

// Parses a Content-Encoding or grpc-encoding value (empty means identity). Unsupported, with
// Triton's text ("Unsupported compression type"), for others.
base::Result<Compression> ParseContentEncoding(std::string_view value);

// Returns the encoding that an Accept-Encoding value requests: that of identity, gzip and deflate
// with the highest q-value, the first among equals; identity if none is named.
Compression NegotiateCompression(std::string_view accept_encoding);

// Bytes in a buffer that they keep alive. `data` need not begin where the buffer does.
struct BufferView {
  base::BufferRef buffer;
  std::string_view data;
};

// The limit of a decompressed body, and its placement in memory.
struct DecompressOptions {
  size_t max_bytes = size_t{64} << 20;
  // The byte of the output that must be 64-byte aligned, because the first tensor begins there.
  size_t aligned_byte = 0;
  // Ends the error about an output that is too large: what a user can do about it.
  std::string_view limit_hint;
};

// Inflates a whole gzip or zlib stream (which of the two is detected). The output never exceeds
// max_bytes and is followed by 64 readable bytes. InvalidArgument for data that is malformed,
// truncated, followed by other bytes, or too large ("Decompressed data size exceeds the maximum
// allowed value of ...").
base::Result<BufferView> Decompress(std::string_view compressed, const DecompressOptions& options);

// Compresses the concatenation of `parts`.
base::Result<BufferView> Compress(Compression type, std::span<const iovec> parts);

}  // namespace nereid::net
