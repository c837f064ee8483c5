// SPDX-License-Identifier: Apache-2.0
// Receives most of a large message directly into its buffer: the length of the current frame is
// known, and clients with more to send continue with frames of the same length. nghttp2 gets all
// bytes in order, wherever they lie; bytes that did not arrive as predicted are reassembled first.
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
  // A DATA frame without padding begins; for any other frame `bytes` is 0.
  void OnFrame(int32_t stream_id, size_t bytes) {
    stream_id_ = stream_id;
    bytes_ = left_ = bytes;
  }
  // Some of its payload was passed on.
  void OnData(size_t bytes) { left_ -= std::min(left_, bytes); }
  // Returns the stream of the current DATA frame if some of it was passed on (nghttp2 may discard a
  // frame of which nothing was); 0 if there is none.
  int32_t stream_id() const { return left_ == 0 || left_ == bytes_ ? 0 : stream_id_; }

  // Plans a read of what comes next: `room` in `message` is for the rest of a message of
  // stream_id(), and `rest` for whatever follows it. Returns false if there is nothing to gain.
  bool Plan(const base::BufferRef& message, std::span<std::byte> room, std::span<std::byte> rest,
            Http2Scatter& plan) const;
  // Called when the first `size` bytes of `plan` have arrived. Passes them to `feed(data, size)` in
  // order until that returns false, and returns its last result. Feed also calls OnFrame and
  // OnData.
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
  // How many plans to skip after one whose prediction was wrong.
  static constexpr int kSkippedPlans = 16;

  // Returns whether the received head of that frame is the predicted one, and is due now.
  bool IsAsPlanned(const Http2Scatter& plan, size_t frame) const;
  // Returns the last `size` bytes that arrived, which lie in the parts from `part` on. Null if
  // memory is exhausted.
  static base::BufferRef PutTogether(const Http2Scatter& plan, size_t part, size_t size);

  // The current DATA frame, if it has no padding.
  int32_t stream_id_ = 0;
  size_t bytes_ = 0;
  size_t left_ = 0;
  int plans_to_skip_ = 0;  // because a prediction was wrong
};

}  // namespace nereid::http2
