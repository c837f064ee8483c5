// SPDX-License-Identifier: Apache-2.0
// Where the bytes of an HTTP/2 connection that come next belong, as far as that can be foretold
// within a large message: payloads straight into the message, heads of frames aside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/uio.h>

#include "base/buffer.h"

namespace nereid::http2 {

// The layout of one gathered read. Confined to the thread that reads.
struct Http2Scatter {
  static constexpr size_t kFrameHeadBytes = 9;
  // Clients that keep to the smallest frame size send 16 KiB at a time.
  static constexpr size_t kMaxFrames = 64;
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  void Add(void* place, size_t size) {
    parts[count++] = {place, size};
    bytes += size;
  }

  base::BufferRef message;  // keeps the places
  int32_t stream_id = 0;
  size_t count = 0;
  size_t bytes = 0;  // of all parts
  // The rest of the frame under way; a head and a payload for each frame that is foretold (of these
  // `frames`); at last, perhaps, a place for whatever follows.
  size_t frames = 0;
  std::array<iovec, 2 * kMaxFrames + 2> parts;
  std::array<std::array<uint8_t, kFrameHeadBytes>, kMaxFrames> heads;
};

}  // namespace nereid::http2
