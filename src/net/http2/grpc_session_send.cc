// SPDX-License-Identifier: Apache-2.0
// Responses: headers, messages as DATA frames whose payload stays where it is, trailers.
#include <algorithm>
#include <cstring>

#include "http2/grpc_connection.h"
#include "http2/grpc_session.h"
#include "http2/grpc_wire.h"
#include "net/compression.h"

namespace nereid::http2 {
namespace {

// Larger frames save nothing: a frame costs nine bytes and one piece of a gathered write.
constexpr ssize_t kMaxDataFrame = 256 << 10;
// Clients refuse trailers beyond 8 KiB.
constexpr size_t kMaxStatusText = 4096;

nghttp2_nv StaticHeader(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// grpc-status and, where there is a text, grpc-message.
class StatusHeaders {
 public:
  StatusHeaders(int code, std::string_view text)
      : code_(std::to_string(code)), text_(PercentEncode(text.substr(0, kMaxStatusText))) {}

  size_t AddTo(nghttp2_nv* headers) const {
    headers[0] = StaticHeader("grpc-status", code_);
    headers[0].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    if (text_.empty()) return 1;
    headers[1] = StaticHeader("grpc-message", text_);
    headers[1].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX;
    return 2;
  }

 private:
  std::string code_;
  std::string text_;
};

constexpr std::string_view kOkStatus = "0";

std::string_view EncodingName(uint8_t encoding) {
  return static_cast<net::Compression>(encoding) == net::Compression::kGzip ? "gzip" : "deflate";
}

}  // namespace

void GrpcSession::SetSendCallbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        static_cast<GrpcSession*>(self)->OnFrameSent(*frame);
        return 0;
      });
  nghttp2_session_callbacks_set_send_data_callback(
      callbacks, [](nghttp2_session*, nghttp2_frame*, const uint8_t* frame_head, size_t length,
                    nghttp2_data_source* source, void* self) {
        return static_cast<GrpcSession*>(self)->OnSendData(*static_cast<GrpcCall*>(source->ptr),
                                                           frame_head, length);
      });
  nghttp2_session_callbacks_set_data_source_read_length_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t, int32_t, int32_t, uint32_t, void*) {
        return kMaxDataFrame;
      });
}

void GrpcSession::Apply(GrpcMessagePtr order) {
  GrpcCall& call = *order->call_;
  const uint8_t orders = order->orders_;
  if (orders & GrpcMessage::kReturn) ApplyReturn(call, *order);
  if (call.stream_closed_) return;
  if (orders & GrpcMessage::kCredit) {
    ReleaseHeld(call, order->credit_);
    Replenish();
    MoveLine();
  }
  if (call.finished_) return;
  if (orders & GrpcMessage::kAbort) {
    Fail(call, static_cast<GrpcStatus>(order->status_code_), order->status_text_);
    return;
  }
  if (orders & GrpcMessage::kFinish) {
    call.finished_ = true;
    call.status_code_ = order->status_code_;
    call.status_text_ = order->status_text_;
  }
  if (orders & GrpcMessage::kSend) {
    call.queued_bytes_ += kGrpcPrefixBytes + order->size();
    GrpcMessage* const message = order.release();
    message->next_message_ = nullptr;
    (call.send_tail_ != nullptr ? call.send_tail_->next_message_ : call.send_head_) = message;
    call.send_tail_ = message;
  }
  if (orders & (GrpcMessage::kSend | GrpcMessage::kFinish)) Respond(call);
}

void GrpcSession::Fail(GrpcCall& call, GrpcStatus status, std::string_view text) {
  if (call.finished_ || call.stream_closed_) return;
  call.finished_ = true;
  call.status_code_ = static_cast<int>(status);
  call.status_text_ = text;
  ReportCancel(call);
  DropIncomplete(call);
  if (call.prefix_sent_ > 0) {
    // A message is half on its way; trailers now would leave the client with a broken one.
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call.stream_id_, NGHTTP2_CANCEL);
    return;
  }
  while (GrpcMessage* const message = call.send_head_) {
    call.send_head_ = message->next_message_;
    GrpcMessagePtr dropped(message);
  }
  call.send_tail_ = nullptr;
  call.queued_bytes_ = 0;
  call.unsent_bytes_.store(0, std::memory_order_relaxed);
  call.unsent_messages_.store(0, std::memory_order_release);
  Respond(call);
}

void GrpcSession::ReportCancel(GrpcCall& call) {
  call.is_cancelled_.store(true, std::memory_order_release);
  if (call.events_ == nullptr || call.cancel_reported_) return;
  if (call.away_ == GrpcCall::Away::kGone) return;  // EndAway reports it
  call.cancel_reported_ = true;
  call.events_->OnCancelled();
}

void GrpcSession::Respond(GrpcCall& call) {
  if (call.response_started_) {
    nghttp2_session_resume_data(session_, call.stream_id_);
    return;
  }
  call.response_started_ = true;
  nghttp2_nv headers[5] = {StaticHeader(":status", "200"),
                           StaticHeader("content-type", "application/grpc")};
  int result;
  if (call.finished_ && call.send_head_ == nullptr) {
    const StatusHeaders status(call.status_code_, call.status_text_);
    const size_t count = 2 + status.AddTo(headers + 2);
    result = nghttp2_submit_response(session_, call.stream_id_, headers, count, nullptr);
  } else {
    size_t count = 2;
    headers[count++] = StaticHeader("grpc-accept-encoding", "identity, deflate, gzip");
    if (call.response_encoding_ != 0) {
      headers[count++] = StaticHeader("grpc-encoding", EncodingName(call.response_encoding_));
    }
    nghttp2_data_provider provider;
    provider.source.ptr = &call;
    provider.read_callback = [](nghttp2_session*, int32_t, uint8_t*, size_t limit, uint32_t* flags,
                                nghttp2_data_source* source, void* self) {
      return static_cast<GrpcSession*>(self)->OnReadData(*static_cast<GrpcCall*>(source->ptr),
                                                         limit, flags);
    };
    result = nghttp2_submit_response(session_, call.stream_id_, headers, count, &provider);
  }
  if (result != 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call.stream_id_, NGHTTP2_INTERNAL_ERROR);
  }
}

ssize_t GrpcSession::OnReadData(GrpcCall& call, size_t limit, uint32_t* flags) {
  if (call.queued_bytes_ == 0 && !call.finished_) return NGHTTP2_ERR_DEFERRED;
  const size_t length = std::min(limit, call.queued_bytes_);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (call.finished_ && length == call.queued_bytes_) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    SubmitTrailers(call);
  }
  return static_cast<ssize_t>(length);
}

void GrpcSession::SubmitTrailers(GrpcCall& call) {
  if (call.status_code_ == 0 && call.status_text_.empty()) {
    const nghttp2_nv ok = StaticHeader("grpc-status", kOkStatus);
    nghttp2_submit_trailer(session_, call.stream_id_, &ok, 1);
    return;
  }
  const StatusHeaders status(call.status_code_, call.status_text_);
  nghttp2_nv headers[2];
  const size_t count = status.AddTo(headers);
  nghttp2_submit_trailer(session_, call.stream_id_, headers, count);
}

int GrpcSession::OnSendData(GrpcCall& call, const uint8_t* frame_head, size_t length) {
  if (output_->full()) return NGHTTP2_ERR_WOULDBLOCK;
  constexpr size_t kFrameHeadBytes = 9;
  ping_strikes_ = 0;
  last_ping_received_ns_ = 0;
  pings_since_data_ = 0;
  bool failed = !output_->Copy(frame_head, kFrameHeadBytes);
  call.queued_bytes_ -= length;
  while (GrpcMessage* const message = call.send_head_) {
    if (call.prefix_sent_ < kGrpcPrefixBytes) {
      const auto size = static_cast<uint32_t>(message->size());
      const uint8_t prefix[kGrpcPrefixBytes] = {
          message->is_compressed_, static_cast<uint8_t>(size >> 24),
          static_cast<uint8_t>(size >> 16), static_cast<uint8_t>(size >> 8),
          static_cast<uint8_t>(size)};
      const size_t step = std::min(length, kGrpcPrefixBytes - call.prefix_sent_);
      failed |= !output_->Copy(prefix + call.prefix_sent_, step);
      call.prefix_sent_ = static_cast<uint8_t>(call.prefix_sent_ + step);
      length -= step;
      if (call.prefix_sent_ < kGrpcPrefixBytes) break;
    }
    while (length > 0 && call.segment_ < message->segment_count()) {
      const GrpcMessage::Segment& segment = message->segment(call.segment_);
      const size_t step = std::min(length, segment.size - call.segment_offset_);
      call.head_referred_ |= output_->Add(segment.data + call.segment_offset_, step, &failed);
      length -= step;
      call.segment_offset_ += step;
      if (call.segment_offset_ < segment.size) break;
      ++call.segment_;
      call.segment_offset_ = 0;
    }
    if (call.segment_ < message->segment_count()) break;
    PopSent(call);
    if (length == 0) break;
  }
  return failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void GrpcSession::PopSent(GrpcCall& call) {
  GrpcMessagePtr message(call.send_head_);
  call.unsent_bytes_.fetch_sub(message->size(), std::memory_order_relaxed);
  call.send_head_ = message->next_message_;
  if (call.send_head_ == nullptr) call.send_tail_ = nullptr;
  call.prefix_sent_ = 0;
  call.segment_ = 0;
  call.segment_offset_ = 0;
  if (std::exchange(call.head_referred_, false)) output_->Retire(std::move(message));
  call.unsent_messages_.fetch_sub(1, std::memory_order_seq_cst);
  if (call.wants_sent_.load(std::memory_order_seq_cst) && call.events_ != nullptr) [[unlikely]] {
    call.events_->OnSent();
  }
}

void GrpcSession::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  ping_strikes_ = 0;
  last_ping_received_ns_ = 0;
  pings_since_data_ = 0;
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) &&
      nghttp2_session_get_stream_remote_close(session_, frame.hd.stream_id) == 0) {
    // Answered before the client was through: it need not send the rest.
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR);
  }
}

bool GrpcSession::Fill(Http2Output& output) {
  output_ = &output;
  bool ok = true;
  while (!output.full()) {
    const uint8_t* data = nullptr;
    const ssize_t n = nghttp2_session_mem_send(session_, &data);
    if (n < 0) ok = false;
    if (n <= 0) break;
    if (!output.Copy(data, static_cast<size_t>(n))) ok = false;
    if (!ok) break;
  }
  output_ = nullptr;
  return ok;
}

bool GrpcSession::IsOver() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

}  // namespace nereid::http2
