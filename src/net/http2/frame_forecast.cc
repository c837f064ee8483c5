// SPDX-License-Identifier: Apache-2.0
#include "http2/frame_forecast.h"

#include <cstring>

#include <nghttp2/nghttp2.h>

namespace nereid::http2 {
namespace {

// Fewer bytes are not worth a separate read.
constexpr size_t kMinPlanned = size_t{16} << 10;
// A frame of this length is worth it, even by itself.
constexpr size_t kLargeFrame = size_t{64} << 10;

}  // namespace

bool FrameForecast::Plan(const base::BufferRef& message, std::span<std::byte> room,
                         std::span<std::byte> rest, Http2Scatter& plan) const {
  if (room.size() < kMinPlanned || left_ > room.size()) return false;
  if (plans_to_skip_ > 0 && left_ < kLargeFrame) return false;
  plan.message = message;
  plan.stream_id = stream_id_;
  plan.Add(room.data(), left_);
  room = room.subspan(left_);
  const size_t max_frames = plans_to_skip_ > 0 ? 0 : Http2Scatter::kMaxFrames;
  while (!room.empty() && plan.frames < max_frames && plan.bytes < Http2Scatter::kMaxBytes) {
    const size_t step = std::min(room.size(), bytes_);
    plan.Add(plan.heads[plan.frames++].data(), Http2Scatter::kFrameHeadBytes);
    plan.Add(room.data(), step);
    room = room.subspan(step);
  }
  if (room.empty() || max_frames == 0) plan.Add(rest.data(), rest.size());
  return plan.bytes >= kMinPlanned;
}

bool FrameForecast::IsAsPlanned(const Http2Scatter& plan, size_t frame) const {
  const auto& head = plan.heads[frame];
  const size_t length = size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2];
  const uint32_t stream =
      uint32_t{head[5]} << 24 | uint32_t{head[6]} << 16 | uint32_t{head[7]} << 8 | head[8];
  return left_ == 0 && length == plan.parts[2 * frame + 2].iov_len && head[3] == NGHTTP2_DATA &&
         !(head[4] & NGHTTP2_FLAG_PADDED) && stream == static_cast<uint32_t>(plan.stream_id);
}

base::BufferRef FrameForecast::PutTogether(const Http2Scatter& plan, size_t part, size_t size) {
  base::BufferRef together = base::AcquireBuffer(size);
  if (!together) return together;
  for (size_t at = 0; at < size; ++part) {
    const size_t step = std::min(size - at, plan.parts[part].iov_len);
    std::memcpy(together.data() + at, plan.parts[part].iov_base, step);
    at += step;
  }
  return together;
}

}  // namespace nereid::http2
