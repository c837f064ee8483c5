// SPDX-License-Identifier: Apache-2.0
// The destinations of the next bytes of an HTTP/2 connection, as far as they can be predicted
// within a large message: payloads directly into the message, frame headers elsewhere.
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
  // Clients that use the smallest frame size send 16 KiB at a time.
  static constexpr size_t kMaxFrames = 64;
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  void Add(void* place, size_t size) {
    parts[count++] = {place, size};
    bytes += size;
  }

  base::BufferRef message;  // keeps the memory of the parts
  int32_t stream_id = 0;
  size_t count = 0;
  size_t bytes = 0;  // total size of the parts
  // The parts are: the rest of the current frame; a header and a payload for each predicted frame
  // (`frames` of them); and finally, perhaps, room for whatever follows.
  size_t frames = 0;
  std::array<iovec, 2 * kMaxFrames + 2> parts;
  std::array<std::array<uint8_t, kFrameHeadBytes>, kMaxFrames> heads;
};

}  // namespace nereid::http2
