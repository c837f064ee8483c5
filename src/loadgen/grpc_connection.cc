// SPDX-License-Identifier: Apache-2.0
#include "loadgen/grpc_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace nereid::loadgen {
namespace {

constexpr size_t kBufferSize = 256 * 1024;
constexpr size_t kOutboxSize = 256 * 1024;
// Large windows, because the load should measure the server rather than the protocol's small
// default.
constexpr int32_t kStreamWindow = (1 << 24) - 1;
constexpr int32_t kConnectionWindow = (1 << 26) - 1;

std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

nghttp2_nv Header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

ssize_t ReadOutgoing(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t* flags,
                     nghttp2_data_source* source, void*) {
  auto& call = *static_cast<GrpcCall*>(source->ptr);
  const size_t size = std::min(room, call.outgoing.size() - call.sent);
  std::memcpy(to, call.outgoing.data() + call.sent, size);
  call.sent += size;
  if (call.sent < call.outgoing.size()) return static_cast<ssize_t>(size);
  if (call.is_unary || call.ends_here) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  } else if (size == 0) {
    call.is_waiting = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

struct GrpcConnection::Callbacks {
  static GrpcCall* Find(nghttp2_session* session, int32_t stream) {
    return static_cast<GrpcCall*>(nghttp2_session_get_stream_user_data(session, stream));
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* data,
                    size_t size, void* connection) {
    if (GrpcCall* call = Find(session, stream)) {
      static_cast<GrpcConnection*>(connection)->TakeData(*call, View(data, size));
    }
    return 0;
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void*) {
    const std::string_view key = View(name, name_size);
    // Most headers have other names, so the call is looked up only for these.
    if (key.size() < 11 || key.substr(0, 5) != "grpc-") return 0;
    GrpcCall* call = Find(session, frame->hd.stream_id);
    if (call == nullptr) return 0;
    if (key == "grpc-status")
      call->status = std::atoi(std::string(View(value, value_size)).c_str());
    if (key == "grpc-message") call->status_message = View(value, value_size);
    return 0;
  }

  static int OnClose(nghttp2_session* session, int32_t stream, uint32_t, void* connection) {
    if (GrpcCall* call = Find(session, stream)) {
      call->stream_id = -1;
      static_cast<GrpcConnection*>(connection)->events_.on_close(*call);
    }
    return 0;
  }
};

GrpcConnection::GrpcConnection(Stream stream, const GrpcHead& head, size_t keep_bytes,
                               Events events)
    : stream_(std::move(stream)),
      head_(head),
      keep_bytes_(keep_bytes),
      events_(std::move(events)),
      buffer_(new uint8_t[kBufferSize]) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnData);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnClose);
  nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 2);
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

GrpcConnection::~GrpcConnection() { nghttp2_session_del(session_); }

base::Status GrpcConnection::Begin(GrpcCall& call, std::string_view message) {
  call.outgoing = message;
  call.sent = 0;
  call.ends_here = call.is_waiting = false;
  call.prefix.clear();
  call.message.clear();
  call.message_left = 0;
  call.status = -1;
  call.status_message.clear();
  std::vector<nghttp2_nv> headers = {
      Header(":method", "POST"),     Header(":scheme", head_.is_tls ? "https" : "http"),
      Header(":path", head_.method), Header(":authority", head_.authority),
      Header("te", "trailers"),      Header("content-type", "application/grpc")};
  for (const auto& [name, value] : head_.metadata) headers.push_back(Header(name, value));
  nghttp2_data_provider body{{.ptr = &call}, ReadOutgoing};
  call.stream_id =
      nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, &call);
  if (call.stream_id >= 0) return base::OkStatus();
  return base::UnavailableError(
      fmt::format("the server takes no more calls: {}", nghttp2_strerror(call.stream_id)));
}

void GrpcConnection::Send(GrpcCall& call, std::string_view message) {
  call.outgoing = message;
  call.sent = 0;
  if (call.is_waiting) nghttp2_session_resume_data(session_, call.stream_id);
  call.is_waiting = false;
}

void GrpcConnection::End(GrpcCall& call) {
  call.ends_here = true;
  if (call.is_waiting) nghttp2_session_resume_data(session_, call.stream_id);
  call.is_waiting = false;
}

void GrpcConnection::TakeData(GrpcCall& call, std::string_view data) {
  while (!data.empty()) {
    if (call.prefix.size() < 5) {
      const std::string_view part = data.substr(0, 5 - call.prefix.size());
      call.prefix.append(part);
      data.remove_prefix(part.size());
      if (call.prefix.size() < 5) return;
      call.message_left = 0;
      for (int i = 1; i < 5; ++i) {
        call.message_left = call.message_left << 8 | static_cast<uint8_t>(call.prefix[i]);
      }
      call.message.clear();
    }
    const std::string_view part = data.substr(0, call.message_left);
    if (call.message.size() < keep_bytes_) {
      call.message.append(part.substr(0, keep_bytes_ - call.message.size()));
    }
    call.message_left -= part.size();
    data.remove_prefix(part.size());
    if (call.message_left != 0) return;
    call.prefix.clear();
    events_.on_message(call);
  }
}

void GrpcConnection::Abandon(GrpcCall& call) {
  if (call.stream_id < 0) return;
  nghttp2_session_set_stream_user_data(session_, call.stream_id, nullptr);
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call.stream_id, NGHTTP2_CANCEL);
  call.stream_id = -1;
}

base::Status GrpcConnection::Ended() const {
  return base::UnavailableError(stream_.failure().empty() ? "the server closed the connection"
                                                          : stream_.failure());
}

base::Status GrpcConnection::Receive() {
  do {
    size_t received = 0;
    switch (stream_.Receive(reinterpret_cast<char*>(buffer_.get()), kBufferSize, received)) {
      case Stream::Outcome::kNothingYet:
        return base::OkStatus();
      case Stream::Outcome::kEnd:
        return Ended();
      case Stream::Outcome::kSome:
        break;
    }
    const ssize_t taken = nghttp2_session_mem_recv(session_, buffer_.get(), received);
    if (taken < 0) {
      return base::UnavailableError(
          fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(taken))));
    }
  } while (stream_.has_received());
  return base::OkStatus();
}

base::Result<bool> GrpcConnection::Flush() {
  for (;;) {
    while (outbox_.size() < kOutboxSize) {
      const uint8_t* data = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &data);
      if (size < 0) {
        return base::UnavailableError(
            fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(size))));
      }
      if (size == 0) break;
      outbox_.append(View(data, static_cast<size_t>(size)));
    }
    if (outbox_.empty()) return true;
    while (outbox_sent_ < outbox_.size()) {
      size_t sent = 0;
      switch (stream_.Send(std::string_view(outbox_).substr(outbox_sent_), sent)) {
        case Stream::Outcome::kNothingYet:
          return false;
        case Stream::Outcome::kEnd:
          return Ended();
        case Stream::Outcome::kSome:
          outbox_sent_ += sent;
      }
    }
    outbox_.clear();
    outbox_sent_ = 0;
  }
}

}  // namespace nereid::loadgen
