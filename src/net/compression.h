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

// Of a Content-Encoding or grpc-encoding value (empty means identity), or Unsupported with Triton's
// text ("Unsupported compression type").
base::Result<Compression> ParseContentEncoding(std::string_view value);

// What an Accept-Encoding value asks the reply to be: the coding of identity, gzip and deflate with
// the highest q-value, the first named among equals; identity when none is named.
Compression NegotiateCompression(std::string_view accept_encoding);

// Bytes in a buffer that they keep alive. `data` need not begin where the buffer does.
struct BufferView {
  base::BufferRef buffer;
  std::string_view data;
};

// The limit of a decompressed body, and how its bytes are to lie in memory.
struct DecompressOptions {
  size_t max_bytes = size_t{64} << 20;
  // Byte of the output that is to be 64-byte aligned, because the first tensor begins there.
  size_t aligned_byte = 0;
  // Ends the message of an output that is too large: what a user can do about it.
  std::string_view limit_hint;
};

// Inflates a whole gzip or zlib stream (which of the two is detected), output never above max_bytes
// and followed by 64 readable bytes. InvalidArgument for data that is broken, cut short, followed
// by other bytes, or too large ("Decompressed data size exceeds the maximum allowed value of ...").
base::Result<BufferView> Decompress(std::string_view compressed, const DecompressOptions& options);

// Compresses the concatenation of `parts`.
base::Result<BufferView> Compress(Compression type, std::span<const iovec> parts);

}  // namespace nereid::net
