// SPDX-License-Identifier: Apache-2.0
// Length-prefixed messages out of DATA frames. A message has a buffer of its own, which is taken
// when the prefix has passed the limits. Small ones are copied there from the connection's receive
// buffer. Of a large one most is received there (PlanReceive): the frame under way says how far it
// goes, and clients that have more to send go on with frames as long as the last. nghttp2 gets to
// see all bytes in their order, wherever they lie; what did not come as foretold is put together
// again first.
//
// Room for the client: stream windows are practically unlimited; the connection's window is given
// back as bytes arrive, unless the messages in service (held_bytes_) exceed the budget. Incomplete
// messages never hold room back, so the messages in service, which need nothing more from the
// client, are all that anybody waits for; their declared sizes are bounded instead.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "http2/grpc_connection.h"
#include "http2/grpc_session.h"
#include "http2/grpc_wire.h"

namespace nereid::http2 {
namespace {

// Fewer bytes than this are not worth a read of their own.
constexpr size_t kLeastPlanned = size_t{16} << 10;
// A frame of this length is, even by itself.
constexpr size_t kLargeFrame = size_t{64} << 10;
// Reads after one that brought something else than was foretold.
constexpr int kSkippedPlans = 16;
// Received bytes after which a stream's room is given back.
constexpr size_t kStreamStep = size_t{1} << 20;

size_t DeclaredSize(const uint8_t* prefix) {
  return size_t{prefix[1]} << 24 | size_t{prefix[2]} << 16 | size_t{prefix[3]} << 8 | prefix[4];
}

}  // namespace

void GrpcSession::OnBeginFrame(const nghttp2_frame_hd& head) {
  CheckStream(head);
  const bool is_plain_data = head.type == NGHTTP2_DATA && !(head.flags & NGHTTP2_FLAG_PADDED);
  frame_stream_ = head.stream_id;
  frame_bytes_ = frame_left_ = is_plain_data ? head.length : 0;
}

bool GrpcSession::PlanReceive(Http2Scatter& plan, std::span<std::byte> rest) const {
  // A frame of which nothing was passed on may be one that nghttp2 throws away.
  if (frame_left_ == 0 || frame_left_ == frame_bytes_) return false;
  const GrpcCall* const call = FindCall(frame_stream_);
  if (call == nullptr || call->is_rejected_ || call->finished_ ||
      call->prefix_filled_ < kGrpcPrefixBytes) {
    return false;
  }
  size_t left = call->message_size_ - call->message_filled_;
  if (left < kLeastPlanned || frame_left_ > left) return false;
  if (plans_to_skip_ > 0 && frame_left_ < kLargeFrame) return false;
  plan.message = call->buffer_;
  plan.stream_id = frame_stream_;
  std::byte* place = call->buffer_.data() + call->message_offset_ + call->message_filled_;
  plan.Add(place, frame_left_);
  place += frame_left_;
  left -= frame_left_;
  const size_t most = plans_to_skip_ > 0 ? 0 : Http2Scatter::kMostFrames;
  while (left > 0 && plan.frames < most && plan.bytes < Http2Scatter::kMostBytes) {
    const size_t step = std::min(left, frame_bytes_);
    plan.Add(plan.heads[plan.frames++].data(), Http2Scatter::kFrameHeadBytes);
    plan.Add(place, step);
    place += step;
    left -= step;
  }
  if (left == 0 || most == 0) plan.Add(rest.data(), rest.size());
  return plan.bytes >= kLeastPlanned;
}

// Whether the head of that frame, received, is the one that was foretold, and due now.
bool GrpcSession::IsAsPlanned(const Http2Scatter& plan, size_t frame) const {
  const auto& head = plan.heads[frame];
  const size_t length = size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2];
  const uint32_t stream =
      uint32_t{head[5]} << 24 | uint32_t{head[6]} << 16 | uint32_t{head[7]} << 8 | head[8];
  return frame_left_ == 0 && length == plan.parts[2 * frame + 2].iov_len &&
         head[3] == NGHTTP2_DATA && !(head[4] & NGHTTP2_FLAG_PADDED) &&
         stream == static_cast<uint32_t>(plan.stream_id);
}

bool GrpcSession::ReceivePlanned(const Http2Scatter& plan, size_t size) {
  NoteReceived();
  if (plans_to_skip_ > 0) --plans_to_skip_;
  bool ok = true;
  for (size_t part = 0; ok && size > 0; ++part) {
    const bool is_head = part % 2 == 1 && part / 2 < plan.frames;
    if (is_head && size >= Http2Scatter::kFrameHeadBytes && !IsAsPlanned(plan, part / 2)) {
      plans_to_skip_ = kSkippedPlans;
      ok = FeedRest(plan, part, size);
      break;
    }
    const size_t step = std::min(size, plan.parts[part].iov_len);
    ok = Feed(plan.parts[part].iov_base, step);
    size -= step;
  }
  Replenish();
  return ok;
}

// The last `size` bytes received lie in the parts from `part` on, where they do not belong.
bool GrpcSession::FeedRest(const Http2Scatter& plan, size_t part, size_t size) {
  const base::BufferRef together = base::AcquireBuffer(size);
  if (!together) return false;
  for (size_t at = 0; at < size; ++part) {
    const size_t step = std::min(size - at, plan.parts[part].iov_len);
    std::memcpy(together.data() + at, plan.parts[part].iov_base, step);
    at += step;
  }
  return Feed(together.data(), size);
}

int GrpcSession::OnData(int32_t stream_id, const uint8_t* data, size_t size) {
  unconsumed_bytes_ += size;
  frame_left_ -= std::min(frame_left_, size);
  GrpcCall* const call = FindCall(stream_id);
  if (call == nullptr) return 0;
  if (call->content_left_ >= 0) {
    call->content_left_ -= static_cast<int64_t>(size);
    if (call->content_left_ < 0) RefuseMalformed(*call);
  }
  // The stream's room is so large that it need not be accounted for with every message.
  call->stream_unconsumed_ += size;
  if (call->stream_unconsumed_ >= kStreamStep) {
    nghttp2_session_consume_stream(session_, stream_id, std::exchange(call->stream_unconsumed_, 0));
  }
  ReceiveMessageBytes(*call, data, size);
  return 0;
}

void GrpcSession::ReceiveMessageBytes(GrpcCall& call, const uint8_t* data, size_t size) {
  while (size > 0 && !call.is_rejected_ && !call.finished_) {
    size_t step;
    if (call.prefix_filled_ < kGrpcPrefixBytes) {
      step = std::min(size, kGrpcPrefixBytes - call.prefix_filled_);
      std::memcpy(call.prefix_ + call.prefix_filled_, data, step);
      call.prefix_filled_ = static_cast<uint8_t>(call.prefix_filled_ + step);
      if (call.prefix_filled_ == kGrpcPrefixBytes && !StartMessage(call)) return;
    } else {
      step = std::min(size, call.message_size_ - call.message_filled_);
      std::byte* const place = call.buffer_.data() + call.message_offset_ + call.message_filled_;
      // Received there, or to be moved there.
      if (reinterpret_cast<const std::byte*>(data) != place) std::memmove(place, data, step);
      call.message_filled_ += step;
    }
    data += step;
    size -= step;
    if (call.prefix_filled_ == kGrpcPrefixBytes && call.message_filled_ == call.message_size_) {
      FinishMessage(call);
    }
  }
}

bool GrpcSession::StartMessage(GrpcCall& call) {
  const size_t size = DeclaredSize(call.prefix_);
  call.message_filled_ = 0;
  call.message_size_ = 0;
  if (call.prefix_[0] > 1) {
    Fail(call, GrpcStatus::kInternal, fmt::format("Invalid compression flag {}", call.prefix_[0]));
    return false;
  }
  if (call.prefix_[0] == 1 && call.request_encoding_ == 0) {
    Fail(call, GrpcStatus::kInternal, "A compressed message without a grpc-encoding");
    return false;
  }
  if (size > options_.max_message_bytes) {
    Fail(call, GrpcStatus::kResourceExhausted,
         fmt::format("Received message larger than max ({} vs. {})", size,
                     options_.max_message_bytes));
    return false;
  }
  if (incomplete_messages_ > 0 && incomplete_bytes_ + size > options_.max_incomplete_bytes) {
    Fail(call, GrpcStatus::kResourceExhausted,
         "Too many large messages at once on this connection");
    return false;
  }
  if (size > 0) {
    // The end of the message is aligned: the tensor that usually ends it then is, too, if its size
    // is a multiple of the alignment.
    call.message_offset_ =
        (base::kBufferAlignment - size % base::kBufferAlignment) % base::kBufferAlignment;
    call.buffer_ = base::AcquireArrivalBuffer(size + call.message_offset_);
    if (!call.buffer_) {
      Fail(call, GrpcStatus::kResourceExhausted, "No memory for the message");
      return false;
    }
  }
  call.message_size_ = size;
  call.is_progress_known_ = false;
  incomplete_bytes_ += size;
  ++incomplete_messages_;
  return true;
}

void GrpcSession::DropIncomplete(GrpcCall& call) {
  if (call.prefix_filled_ == kGrpcPrefixBytes) {
    incomplete_bytes_ -= call.message_size_;
    --incomplete_messages_;
  }
  call.prefix_filled_ = 0;
  call.message_size_ = 0;
  call.message_filled_ = 0;
  call.buffer_.Reset();
}

void GrpcSession::FinishMessage(GrpcCall& call) {
  const bool is_compressed = call.prefix_[0] == 1;
  base::BufferRef buffer = std::move(call.buffer_);
  std::string_view message;
  if (call.message_size_ > 0) {
    message = {reinterpret_cast<const char*>(buffer.data() + call.message_offset_),
               call.message_size_};
  }
  DropIncomplete(call);
  Deliver(call, std::move(buffer), message, is_compressed);
}

void GrpcSession::DeliverWaiting() {
  if (waiting_messages_ == 0) return;
  for (GrpcCall* call = calls_; call != nullptr; call = call->next_) {
    if (HasWaiting(*call)) Continue(*call);
  }
}

void GrpcSession::ReleaseHeld(GrpcCall& call, size_t bytes) {
  bytes = std::min(bytes, call.held_bytes_);
  call.held_bytes_ -= bytes;
  held_bytes_ -= bytes;
}

void GrpcSession::Replenish() {
  if (unconsumed_bytes_ == 0) return;
  if (held_bytes_ > options_.connection_budget_bytes) {
    held_room_back_ = true;
    return;
  }
  nghttp2_session_consume_connection(session_, unconsumed_bytes_);
  unconsumed_bytes_ = 0;
}

}  // namespace nereid::http2
