// SPDX-License-Identifier: Apache-2.0
// Receives most of a large message where it belongs: the frame under way says how far it goes, and
// clients that have more to send go on with frames as long as the last. nghttp2 gets to see all
// bytes in their order, wherever they lie; what did not come as foretold is put together again
// first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "http2/http2_scatter.h"

namespace nereid::http2 {

// Confined to the holder of its connection.
class FrameForecast {
 public:
  // A DATA frame without padding begins; any other does with 0 bytes.
  void OnFrame(int32_t stream_id, size_t bytes) {
    stream_id_ = stream_id;
    bytes_ = left_ = bytes;
  }
  // Payload of it was passed on.
  void OnData(size_t bytes) { left_ -= std::min(left_, bytes); }
  // The stream of the DATA frame under way, if anything of it was passed on: one of which nothing
  // was may be one that nghttp2 throws away. 0 when there is none.
  int32_t stream_id() const { return left_ == 0 || left_ == bytes_ ? 0 : stream_id_; }

  // Lays out a read of what comes next, where `room` in `message` is for the rest of a message of
  // stream_id(), and `rest` for whatever follows that. False when there is nothing to gain.
  bool Plan(const base::BufferRef& message, std::span<std::byte> room, std::span<std::byte> rest,
            Http2Scatter& plan) const;
  // The first `size` bytes that `plan` lays out have come. Gives them to `feed(data, size)` in
  // their order until that returns false, and returns what it did. What feed does with them
  // includes the calls of OnFrame and OnData.
  template <typename Feed>
  bool Replay(const Http2Scatter& plan, size_t size, const Feed& feed) {
    if (plans_to_skip_ > 0) --plans_to_skip_;
    bool ok = true;
    for (size_t part = 0; ok && size > 0; ++part) {
      const bool is_head = part % 2 == 1 && part / 2 < plan.frames;
      if (is_head && size >= Http2Scatter::kFrameHeadBytes && !IsAsPlanned(plan, part / 2)) {
        plans_to_skip_ = kSkippedPlans;
        const base::BufferRef together = PutTogether(plan, part, size);
        return together && feed(together.data(), size);
      }
      const size_t step = std::min(size, plan.parts[part].iov_len);
      ok = feed(plan.parts[part].iov_base, step);
      size -= step;
    }
    return ok;
  }

 private:
  // Reads after one that brought something else than was foretold.
  static constexpr int kSkippedPlans = 16;

  // Whether the head of that frame, received, is the one that was foretold, and due now.
  bool IsAsPlanned(const Http2Scatter& plan, size_t frame) const;
  // The last `size` bytes that came, which lie in the parts from `part` on. Null when memory is
  // exhausted.
  static base::BufferRef PutTogether(const Http2Scatter& plan, size_t part, size_t size);

  // The DATA frame under way, if it has no padding.
  int32_t stream_id_ = 0;
  size_t bytes_ = 0;
  size_t left_ = 0;
  int plans_to_skip_ = 0;  // since frames did not come as foretold
};

}  // namespace nereid::http2
