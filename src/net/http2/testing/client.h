// SPDX-License-Identifier: Apache-2.0
// A gRPC client in memory, made of nghttp2's client session, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

namespace nereid::http2 {

// Encodes a message with its prefix.
inline std::string Prefixed(std::string_view message, bool compressed = false) {
  std::string framed(1, compressed ? '\1' : '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed += static_cast<char>(message.size() >> shift);
  }
  framed += message;
  return framed;
}

// Returns the messages of `body`, without their prefixes.
inline std::vector<std::string> Messages(std::string_view body) {
  std::vector<std::string> all;
  while (body.size() >= 5) {
    size_t size = 0;
    for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(body[i]);
    all.emplace_back(body.substr(5, size));
    body.remove_prefix(std::min(body.size(), 5 + size));
  }
  return all;
}

// Returns incompressible bytes.
inline std::string Noise(size_t size, uint32_t seed) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

// Makes an HTTP/2 frame.
inline std::string Frame(uint8_t type, uint8_t flags, int32_t stream, std::string_view payload) {
  std::string frame;
  for (int shift = 16; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(stream >> shift);
  return frame.append(payload);
}

// Splits `bytes` into DATA frames whose lengths `length` gives; the last one ends the stream.
inline std::vector<std::string> Cut(int32_t stream, std::string_view bytes,
                                    const std::function<size_t(size_t index)>& length) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    const std::string_view payload = bytes.substr(0, length(frames.size()));
    bytes.remove_prefix(payload.size());
    const uint8_t flags = bytes.empty() ? NGHTTP2_FLAG_END_STREAM : NGHTTP2_FLAG_NONE;
    frames.push_back(Frame(NGHTTP2_DATA, flags, stream, payload));
  }
  return frames;
}

// What a client received for one call.
struct Reply {
  std::map<std::string, std::string> headers;  // and trailers
  std::string body;
  bool is_closed = false;
  uint32_t error_code = 0;

  std::string status() const {
    const auto found = headers.find("grpc-status");
    return found == headers.end() ? "none" : found->second;
  }
  std::vector<std::string> messages() const { return Messages(body); }
};

// TakeOutput returns the bytes that it sends, and Feed takes those that it receives.
class TestClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Grants the server a window of `window` bytes for each stream, and at least as many for all.
  explicit TestClient(uint32_t window = 1 << 30) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    SetCallbacks(callbacks);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
    if (window > 65535) {
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                            static_cast<int32_t>(window));
    }
  }
  ~TestClient() { nghttp2_session_del(session_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  // Returns the headers of a call; those in `more` replace or extend the usual ones.
  static Headers CallHeaders(const std::string& path, const Headers& more = {}) {
    Headers headers = {{":method", "POST"}, {":scheme", "http"},
                       {":authority", "t"}, {":path", path},
                       {"te", "trailers"},  {"content-type", "application/grpc"}};
    for (const auto& [name, value] : more) {
      const auto found = std::ranges::find(headers, name, &Headers::value_type::first);
      if (found != headers.end()) {
        found->second = value;  // in place, because pseudo-headers must come first
      } else {
        headers.emplace_back(name, value);
      }
    }
    return headers;
  }
  // Begins a call; `body` is sent as it is, and the call is then half-closed unless `open`.
  int32_t Call(const Headers& headers, std::string body, bool open = false) {
    std::vector<nghttp2_nv> fields;
    for (const auto& [name, value] : headers) {
      fields.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                        reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                        value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    auto upload = std::make_unique<Upload>(Upload{std::move(body), 0, open});
    nghttp2_data_provider provider;
    provider.source.ptr = upload.get();
    provider.read_callback = &ReadUpload;
    const int32_t id =
        nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), &provider, nullptr);
    uploads_[id] = std::move(upload);
    return id;
  }
  void SendMore(int32_t id, const std::string& bytes, bool open) {
    uploads_[id]->body += bytes;
    uploads_[id]->open = open;
    nghttp2_session_resume_data(session_, id);
  }
  void Reset(int32_t id) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }
  void Ping() { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }

  // Returns the bytes to send.
  std::string TakeOutput() {
    std::string bytes;
    for (;;) {
      const uint8_t* data = nullptr;
      const ssize_t n = nghttp2_session_mem_send(session_, &data);
      if (n <= 0) return bytes;
      bytes.append(data, data + n);
    }
  }
  void Feed(std::string_view bytes) {
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
  }

  const Reply& reply(int32_t id) { return replies_[id]; }
  int pings() const { return pings_; }  // from the server
  int pongs() const { return pongs_; }
  int goaways() const { return goaways_; }
  uint32_t goaway_code() const { return goaway_code_; }

 private:
  struct Upload {
    std::string body;
    size_t sent;
    bool open;
  };

  static ssize_t ReadUpload(nghttp2_session*, int32_t, uint8_t* to, size_t limit, uint32_t* flags,
                            nghttp2_data_source* source, void*) {
    auto& upload = *static_cast<Upload*>(source->ptr);
    const size_t n = std::min(limit, upload.body.size() - upload.sent);
    if (n == 0 && upload.open) return NGHTTP2_ERR_DEFERRED;
    std::copy_n(upload.body.data() + upload.sent, n, to);
    upload.sent += n;
    if (upload.sent == upload.body.size() && !upload.open) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(n);
  }

  static void SetCallbacks(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks,
        [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
           const uint8_t* value, size_t value_size, uint8_t, void* self) {
          static_cast<TestClient*>(self)->replies_[frame->hd.stream_id].headers[std::string(
              name, name + name_size)] = std::string(value, value + value_size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks,
        [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* self) {
          static_cast<TestClient*>(self)->replies_[id].body.append(data, data + size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, int32_t id, uint32_t code, void* self) {
          Reply& reply = static_cast<TestClient*>(self)->replies_[id];
          reply.is_closed = true;
          reply.error_code = code;
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          auto& client = *static_cast<TestClient*>(self);
          if (frame->hd.type == NGHTTP2_PING) {
            ++(frame->hd.flags & NGHTTP2_FLAG_ACK ? client.pongs_ : client.pings_);
          } else if (frame->hd.type == NGHTTP2_GOAWAY) {
            ++client.goaways_;
            client.goaway_code_ = frame->goaway.error_code;
          }
          return 0;
        });
  }

  nghttp2_session* session_ = nullptr;
  std::map<int32_t, std::unique_ptr<Upload>> uploads_;
  std::map<int32_t, Reply> replies_;
  int pings_ = 0;
  int pongs_ = 0;
  int goaways_ = 0;
  uint32_t goaway_code_ = 0;
};

}  // namespace nereid::http2
