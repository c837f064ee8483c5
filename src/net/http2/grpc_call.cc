// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_call.h"

#include <vector>

#include "base/object_pool.h"
#include "http2/call_host.h"
#include "http2/grpc_stream.h"

namespace nereid::http2 {
namespace {

// Smaller messages do not shrink.
constexpr size_t kCompressAbove = 256;

// Replaces the message's content with its compressed form; returns whether it did.
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

void GrpcCall::Order(GrpcMessagePtr message, uint8_t kinds) {
  // First of all: what the message refers to may have been the last that keeps this call.
  Reference();
  if (kinds & GrpcOrder::kSend) {
    if (response_encoding_ != net::Compression::kIdentity) {
      message->order.is_compressed = CompressMessage(*message, response_encoding_);
    }
    unsent_.Add(message->size());
  }
  message->order.kinds = kinds;
  message->order.stream = static_cast<GrpcStream*>(this);
  host_->Submit(std::move(message));
}

bool GrpcCall::is_crowded() const { return host_->is_crowded(); }

std::string GrpcCall::PeerAddress() const { return host_->PeerAddress(); }

const net::PeerIdentity* GrpcCall::peer_identity() const { return host_->peer_identity(); }

void GrpcCall::Send(GrpcMessagePtr message, size_t credit) {
  message->order.credit = credit;
  Order(std::move(message),
        credit > 0 ? GrpcOrder::kSend | GrpcOrder::kCredit : uint8_t{GrpcOrder::kSend});
}

void GrpcCall::SendAndFinish(GrpcMessagePtr message, GrpcTrailers trailers) {
  message->order.trailers = std::make_unique<const GrpcTrailers>(std::move(trailers));
  SendAndFinish(std::move(message));
}

void GrpcCall::SendAndFinish(GrpcMessagePtr message) {
  Order(std::move(message), GrpcOrder::kSend | GrpcOrder::kFinish);
}

void GrpcCall::Finish(GrpcStatus status, std::string_view text, GrpcTrailers trailers) {
  GrpcMessagePtr message = GrpcMessage::Create();
  message->order.trailers = std::make_unique<const GrpcTrailers>(std::move(trailers));
  message->order.status_code = static_cast<int>(status);
  message->order.status_text = text;
  Order(std::move(message), GrpcOrder::kFinish);
}

void GrpcCall::Finish(GrpcStatus status, std::string_view text) {
  GrpcMessagePtr message = GrpcMessage::Create();
  message->order.status_code = static_cast<int>(status);
  message->order.status_text = text;
  Order(std::move(message), GrpcOrder::kFinish);
}

void GrpcCall::Abort(GrpcStatus status, std::string_view text) {
  GrpcMessagePtr message = GrpcMessage::Create();
  message->order.status_code = static_cast<int>(status);
  message->order.status_text = text;
  Order(std::move(message), GrpcOrder::kAbort);
}

void GrpcCall::Credit(size_t bytes) {
  GrpcMessagePtr message = GrpcMessage::Create();
  message->order.credit = bytes;
  Order(std::move(message), GrpcOrder::kCredit);
}

void GrpcCall::Unreference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  CallHost* const host = host_;
  base::ObjectPool<GrpcStream>::Give(static_cast<GrpcStream*>(this));
  host->Release();
}

}  // namespace nereid::http2
