// SPDX-License-Identifier: Apache-2.0
#include "http2/send_queue.h"

#include <algorithm>
#include <utility>

#include "http2/grpc_wire.h"

namespace nereid::http2 {

void SendQueue::Push(GrpcMessagePtr message) {
  bytes_ += kGrpcPrefixBytes + message->size();
  if (first_ == nullptr) {
    first_ = std::move(message);
  } else {
    later_.Append(*message.release());
  }
}

inline size_t SendQueue::FramePrefix(size_t length, Http2Output& output, bool* is_ok) {
  if (prefix_sent_ == kGrpcPrefixBytes) return 0;
  const auto size = static_cast<uint32_t>(first_->size());
  const uint8_t prefix[kGrpcPrefixBytes] = {
      first_->order.is_compressed, static_cast<uint8_t>(size >> 24),
      static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 8),
      static_cast<uint8_t>(size)};
  if (prefix_sent_ == 0 && length >= kGrpcPrefixBytes) [[likely]] {
    prefix_sent_ = kGrpcPrefixBytes;
    *is_ok &= output.Copy(prefix, kGrpcPrefixBytes);  // a constant size is faster to copy
    return kGrpcPrefixBytes;
  }
  const size_t step = std::min(length, kGrpcPrefixBytes - prefix_sent_);
  *is_ok &= output.Copy(prefix + prefix_sent_, step);
  prefix_sent_ = static_cast<uint8_t>(prefix_sent_ + step);
  return step;
}

inline size_t SendQueue::FrameSegments(size_t length, Http2Output& output, bool* is_ok) {
  const size_t before = length;
  while (length > 0 && segment_ < first_->segment_count()) {
    const GrpcMessage::Segment& segment = first_->segment(segment_);
    const size_t step = std::min(length, segment.size - segment_offset_);
    bool has_failed = false;
    is_referred_ |= output.Add(segment.data + segment_offset_, step, &has_failed);
    *is_ok &= !has_failed;
    length -= step;
    segment_offset_ += step;
    if (segment_offset_ < segment.size) break;
    ++segment_;
    segment_offset_ = 0;
  }
  return before - length;
}

inline void SendQueue::Pop(Http2Output& output) {
  GrpcMessagePtr message(later_.Pop());
  message.swap(first_);
  prefix_sent_ = 0;
  segment_ = 0;
  segment_offset_ = 0;
  if (std::exchange(is_referred_, false)) output.Retire(std::move(message));
}

SendQueue::Framed SendQueue::Frame(size_t length, Http2Output& output, UnsentCount& unsent) {
  Framed framed;
  is_promised_ = false;
  // The peer would take what follows for the missing bytes.
  if (length > bytes_) [[unlikely]] {
    framed.is_ok = false;
    return framed;
  }
  bytes_ -= length;
  while (first_ != nullptr) {
    length -= FramePrefix(length, output, &framed.is_ok);
    if (prefix_sent_ < kGrpcPrefixBytes) break;
    length -= FrameSegments(length, output, &framed.is_ok);
    if (segment_ < first_->segment_count()) break;
    const size_t size = first_->size();
    Pop(output);
    framed.is_wanted |= unsent.Remove(size);
    if (length == 0) break;
  }
  return framed;
}

void SendQueue::Drop(Http2Output& output) {
  while (first_ != nullptr) Pop(output);
  bytes_ = 0;
  is_promised_ = false;
}

}  // namespace nereid::http2
