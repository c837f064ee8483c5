// SPDX-License-Identifier: Apache-2.0
// Set-up, frames and headers. Every method here runs inside nghttp2_session_mem_recv, which allows
// submitting frames but not sending them; what handlers order meanwhile waits in the connection's
// outbox.
#include "http2/grpc_session.h"

#include <algorithm>
#include <cstring>

#include "base/object_pool.h"
#include "http2/grpc_connection.h"
#include "http2/grpc_wire.h"
#include "net/compression.h"

namespace nereid::http2 {

GrpcSession::GrpcSession(const GrpcServerOptions& options, GrpcHandler& handler,
                         GrpcConnection& connection, net::Reactor& reactor)
    : options_(options),
      handler_(handler),
      connection_(connection),
      reactor_(reactor),
      heads_(options.max_header_list_bytes),
      now_ns_(base::NowNs()),
      opened_ns_(now_ns_),
      last_received_ns_(now_ns_),
      reset_tokens_(options.reset_burst),
      reset_tokens_ns_(now_ns_) {
  nghttp2_session_callbacks* const callbacks = MakeCallbacks();
  nghttp2_option* option = nullptr;
  NEREID_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_no_http_messaging(option, 1);  // heads_ checks, and data is counted here
  // Our own limit, which tells the client why, comes first.
  nghttp2_option_set_stream_reset_rate_limit(option, uint64_t{options.reset_burst} * 4,
                                             uint64_t{options.resets_per_second} * 4);
  NEREID_CHECK(
      nghttp2_session_server_new3(&session_, callbacks, this, option, memory_.interface()) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);

  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, options.max_frame_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<uint32_t>(std::min<size_t>(options.max_header_list_bytes, UINT32_MAX))},
  };
  NEREID_CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 4) == 0);
  const auto window =
      static_cast<int32_t>(std::clamp<size_t>(options.connection_budget_bytes, 65535, INT32_MAX));
  NEREID_CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, window) == 0);
}

GrpcSession::~GrpcSession() { nghttp2_session_del(session_); }

nghttp2_session_callbacks* GrpcSession::MakeCallbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  NEREID_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  SetReceiveCallbacks(callbacks);
  SetSendCallbacks(callbacks);
  return callbacks;
}

void GrpcSession::SetReceiveCallbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame_hd* head, void* self) {
        static_cast<GrpcSession*>(self)->OnBeginFrame(*head);
        return 0;
      });
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        return static_cast<GrpcSession*>(self)->OnBeginHeaders(*frame);
      });
  nghttp2_session_callbacks_set_on_header_callback2(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                    nghttp2_rcbuf* value, uint8_t, void* self) {
        static_cast<GrpcSession*>(self)->OnHeader(*frame, name, value);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        return static_cast<GrpcSession*>(self)->OnFrame(*frame);
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks,
      [](nghttp2_session*, uint8_t, int32_t stream_id, const uint8_t* data, size_t size,
         void* self) { return static_cast<GrpcSession*>(self)->OnData(stream_id, data, size); });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t stream_id, uint32_t, void* self) {
        static_cast<GrpcSession*>(self)->OnStreamClosed(stream_id);
        return 0;
      });
}

GrpcCall* GrpcSession::FindCall(int32_t stream_id) const {
  // What comes next is mostly of the same stream.
  if (latest_ != nullptr && latest_->stream_id_ == stream_id) return latest_;
  return static_cast<GrpcCall*>(nghttp2_session_get_stream_user_data(session_, stream_id));
}

bool GrpcSession::Receive(const uint8_t* data, size_t size) {
  NoteReceived();
  const bool ok = Feed(data, size);
  Replenish();
  return ok;
}

void GrpcSession::NoteReceived() {
  now_ns_ = base::NowNs();
  last_received_ns_ = now_ns_;
  ping_sent_ns_ = 0;
}

bool GrpcSession::Feed(const void* data, size_t size) {
  return nghttp2_session_mem_recv(session_, static_cast<const uint8_t*>(data), size) >= 0;
}

// nghttp2 forgets a stream with its end and passes over what comes for it later. (Data it passes
// over without telling anybody.)
void GrpcSession::CheckStream(const nghttp2_frame_hd& frame) {
  if (frame.type != NGHTTP2_HEADERS || frame.stream_id % 2 == 0) return;
  if (frame.stream_id > newest_stream_) {
    const int64_t step =
        (int64_t{frame.stream_id} - std::exchange(newest_stream_, frame.stream_id) + 1) / 2;
    begun_ = (step < kRememberedStreams ? begun_ << step : 0) | 1;
    ended_ = step < kRememberedStreams ? ended_ << step : 0;
    return;
  }
  const uint64_t stream = StreamBit(frame.stream_id);
  if (stream == 0 || FindCall(frame.stream_id) != nullptr) return;
  if (!(begun_ & stream)) {
    nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);  // numbers must grow
  } else if (ended_ & stream) {
    nghttp2_session_terminate_session(session_, NGHTTP2_STREAM_CLOSED);
  }
}

uint64_t GrpcSession::StreamBit(int32_t stream_id) const {
  const int32_t age = (newest_stream_ - stream_id) / 2;
  return age < kRememberedStreams ? uint64_t{1} << age : 0;
}

int GrpcSession::OnBeginHeaders(const nghttp2_frame& frame) {
  has_bad_trailers_ = false;
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  heads_.Begin();
  GrpcCall* const call = base::ObjectPool<GrpcCall>::Take();
  call->references_.store(1, std::memory_order_relaxed);  // the stream's own
  connection_.Hold();                                     // until the call is recycled
  call->connection_ = &connection_;
  call->reactor_ = &reactor_;
  call->stream_id_ = frame.hd.stream_id;
  call->start_ns_ = now_ns_;
  latest_ = call;
  call->next_ = calls_;
  if (calls_ != nullptr) calls_->previous_ = call;
  calls_ = call;
  ++open_calls_;
  return nghttp2_session_set_stream_user_data(session_, frame.hd.stream_id, call);
}

void GrpcSession::OnHeader(const nghttp2_frame& frame, nghttp2_rcbuf* name, nghttp2_rcbuf* value) {
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) return heads_.Add(name, value);
  if (!IsTrailerAllowed(name, value)) has_bad_trailers_ = true;
}

int GrpcSession::OnFrame(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      GrpcCall* const call = FindCall(frame.hd.stream_id);
      if (call == nullptr) return 0;
      const bool is_end = frame.hd.flags & NGHTTP2_FLAG_END_STREAM;
      if (frame.hd.type == NGHTTP2_HEADERS) {
        if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
          StartCall(*call);
        } else if (!is_end || has_bad_trailers_) {
          RefuseMalformed(*call);
        }
      }
      if (is_end) HalfClose(*call);
      return 0;
    }
    case NGHTTP2_SETTINGS:
      got_settings_ = true;
      return 0;
    case NGHTTP2_RST_STREAM:
      OnReset();
      return 0;
    case NGHTTP2_PING:
      if (!(frame.hd.flags & NGHTTP2_FLAG_ACK)) {
        OnPing();
      } else if (is_draining_ && !drain_confirmed_) {
        drain_confirmed_ = true;
        nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                              nullptr, 0);
      }
      return 0;
    default:
      return 0;
  }
}

void GrpcSession::RefuseMalformed(GrpcCall& call) {
  if (call.finished_ || call.is_rejected_) return;
  call.is_rejected_ = true;
  call.finished_ = true;
  ReportCancel(call);
  DropIncomplete(call);
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call.stream_id_, NGHTTP2_PROTOCOL_ERROR);
}

void GrpcSession::StartCall(GrpcCall& call) {
  call.head_ = heads_.End();
  if (call.head_ == nullptr) return RefuseMalformed(call);
  if (heads_.is_too_large()) {
    Fail(call, GrpcStatus::kResourceExhausted, "received metadata size exceeds limit");
    return;
  }
  if (!call.head_->is_post()) return RefuseHttp(call, 405);
  if (!call.head_->has_grpc_type()) return RefuseHttp(call, 415);
  if (!call.head_->encoding().has_value()) {
    Fail(call, GrpcStatus::kUnimplemented,
         "Compression algorithm '" + std::string(call.Metadata("grpc-encoding")) +
             "' is not supported; supported are identity, deflate, gzip");
    return;
  }
  call.request_encoding_ = static_cast<uint8_t>(*call.head_->encoding());
  if (options_.response_compression != GrpcCompressionLevel::kNone) {
    call.response_encoding_ = static_cast<uint8_t>(call.head_->accepted());
  }
  call.content_left_ = call.head_->content_length();
  if (const auto timeout = heads_.timeout()) {
    call.deadline_ = base::TimePoint(base::nanoseconds(now_ns_)) + *timeout;
    AddDeadline(call);
  }
  call.events_ = handler_.OnCall(GrpcCallRef(call));
  call.is_rejected_ = call.events_ == nullptr;
  if (is_draining_ && call.events_ != nullptr) call.events_->OnDrain();
}

void GrpcSession::RefuseHttp(GrpcCall& call, int status) {
  call.is_rejected_ = true;
  call.finished_ = true;
  call.response_started_ = true;
  std::string text = std::to_string(status);
  std::string name = ":status";
  const nghttp2_nv header{reinterpret_cast<uint8_t*>(name.data()),
                          reinterpret_cast<uint8_t*>(text.data()), name.size(), text.size(),
                          NGHTTP2_NV_FLAG_NONE};
  nghttp2_submit_response(session_, call.stream_id_, &header, 1, nullptr);
}

void GrpcSession::HalfClose(GrpcCall& call) {
  call.half_closed_ = true;
  ended_ |= StreamBit(call.stream_id_);
  if (call.is_rejected_ || call.finished_) return;
  if (call.content_left_ > 0) return RefuseMalformed(call);
  if (call.prefix_filled_ > 0) {
    Fail(call, GrpcStatus::kInternal, "The client half-closed within a message");
    return;
  }
  if (call.away_ != GrpcCall::Away::kNo || HasWaiting(call)) return;
  EndInput(call);
}

void GrpcSession::OnReset() {
  const double seconds = static_cast<double>(now_ns_ - reset_tokens_ns_) / 1e9;
  reset_tokens_ns_ = now_ns_;
  reset_tokens_ =
      std::min<double>(options_.reset_burst, reset_tokens_ + seconds * options_.resets_per_second);
  reset_tokens_ -= 1;
  if (reset_tokens_ < 0) nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
}

void GrpcSession::OnStreamClosed(int32_t stream_id) {
  GrpcCall* const call = FindCall(stream_id);
  if (call == nullptr) return;
  call->stream_closed_ = true;
  DropIncomplete(*call);
  DropWaiting(*call);
  if (call->away_ == GrpcCall::Away::kInLine) {
    std::erase(line_, stream_id);
    call->away_ = GrpcCall::Away::kNo;
  }
  const bool is_complete = call->finished_ && call->send_head_ == nullptr;
  while (GrpcMessage* const message = call->send_head_) {
    call->send_head_ = message->next_message_;
    GrpcMessagePtr dropped(message);
  }
  call->send_tail_ = nullptr;
  if (call->events_ != nullptr) {
    if (!is_complete) ReportCancel(*call);
    // A worker may be in one of its events: then the end is reported when it is out again.
    if (call->away_ != GrpcCall::Away::kGone) std::exchange(call->events_, nullptr)->OnDone();
  }
  ReleaseHeld(*call, call->held_bytes_);
  (call->previous_ != nullptr ? call->previous_->next_ : calls_) = call->next_;
  if (call->next_ != nullptr) call->next_->previous_ = call->previous_;
  --open_calls_;
  if (latest_ == call) latest_ = nullptr;
  call->Unreference();
  MoveLine();
}

void GrpcSession::CancelAll() {
  line_.clear();
  while (calls_ != nullptr) {
    const int32_t stream_id = calls_->stream_id_;
    OnStreamClosed(stream_id);
    nghttp2_session_set_stream_user_data(session_, stream_id, nullptr);
  }
}

}  // namespace nereid::http2
