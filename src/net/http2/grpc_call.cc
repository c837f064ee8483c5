// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/log.h"
#include "base/object_pool.h"
#include "http2/grpc_connection.h"
#include "http2/grpc_server.h"
#include "net/compression.h"

namespace nereid::http2 {
namespace {

// Smaller messages do not shrink.
constexpr size_t kCompressAbove = 256;

// Replaces the message's content by its compressed form; true when it did.
bool CompressMessage(GrpcMessage& message, net::Compression encoding) {
  if (message.size() < kCompressAbove) return false;
  std::vector<iovec> parts;
  parts.reserve(message.segment_count());
  for (size_t i = 0; i < message.segment_count(); ++i) {
    const GrpcMessage::Segment& segment = message.segment(i);
    parts.push_back({const_cast<std::byte*>(segment.data), segment.size});
  }
  base::Result<net::BufferView> compressed = net::Compress(encoding, parts);
  if (!compressed.ok() || compressed->data.size() >= message.size()) return false;
  message.Clear();
  message.Refer(reinterpret_cast<const std::byte*>(compressed->data.data()),
                compressed->data.size(), std::move(compressed->buffer));
  return true;
}

}  // namespace

void GrpcCall::Order(GrpcMessagePtr message, uint8_t orders) {
  if (orders & GrpcMessage::kSend) {
    if (response_encoding_ != 0) {
      message->is_compressed_ =
          CompressMessage(*message, static_cast<net::Compression>(response_encoding_));
    }
    unsent_bytes_.fetch_add(message->size(), std::memory_order_relaxed);
    unsent_messages_.fetch_add(1, std::memory_order_relaxed);
  }
  message->orders_ = orders;
  message->call_ = this;
  references_.fetch_add(1, std::memory_order_relaxed);
  connection_->Submit(std::move(message));
}

bool GrpcCall::is_crowded() const { return connection_->is_crowded(); }

void GrpcCall::Send(GrpcMessagePtr message) { Order(std::move(message), GrpcMessage::kSend); }

void GrpcCall::SendAndFinish(GrpcMessagePtr message) {
  Order(std::move(message), GrpcMessage::kSend | GrpcMessage::kFinish);
}

void GrpcCall::Finish(GrpcStatus status, std::string_view text) {
  GrpcMessagePtr order = GrpcMessage::Create();
  order->status_code_ = static_cast<int>(status);
  order->status_text_ = text;
  Order(std::move(order), GrpcMessage::kFinish);
}

void GrpcCall::Abort(GrpcStatus status, std::string_view text) {
  GrpcMessagePtr order = GrpcMessage::Create();
  order->status_code_ = static_cast<int>(status);
  order->status_text_ = text;
  Order(std::move(order), GrpcMessage::kAbort);
}

void GrpcCall::Credit(size_t bytes) {
  GrpcMessagePtr order = GrpcMessage::Create();
  order->credit_ = bytes;
  Order(std::move(order), GrpcMessage::kCredit);
}

void GrpcCall::Unreference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  GrpcConnection* const connection = connection_;
  base::ObjectPool<GrpcCall>::Give(this);
  connection->Release();
}

void GrpcCall::Recycle() {
  connection_ = nullptr;
  reactor_ = nullptr;
  events_ = nullptr;
  head_.reset();
  deadline_.reset();
  response_encoding_ = 0;
  is_cancelled_.store(false, std::memory_order_relaxed);
  unsent_bytes_.store(0, std::memory_order_relaxed);
  unsent_messages_.store(0, std::memory_order_relaxed);
  wants_sent_.store(false, std::memory_order_relaxed);
  previous_ = nullptr;
  next_ = nullptr;
  content_left_ = -1;
  stream_unconsumed_ = 0;
  request_encoding_ = 0;
  is_rejected_ = false;
  half_closed_ = false;
  half_close_reported_ = false;
  cancel_reported_ = false;
  stream_closed_ = false;
  response_started_ = false;
  finished_ = false;
  away_ = Away::kNo;
  is_heavy_ = false;
  is_progress_known_ = false;
  prefix_filled_ = 0;
  buffer_.Reset();
  message_size_ = 0;
  message_filled_ = 0;
  held_bytes_ = 0;
  waiting_.clear();
  next_waiting_ = 0;
  send_head_ = nullptr;
  send_tail_ = nullptr;
  queued_bytes_ = 0;
  prefix_sent_ = 0;
  segment_ = 0;
  segment_offset_ = 0;
  head_referred_ = false;
  status_code_ = 0;
  status_text_.clear();
}

}  // namespace nereid::http2
