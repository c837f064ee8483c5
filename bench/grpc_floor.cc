// SPDX-License-Identifier: Apache-2.0
// A lower limit: a gRPC server on one thread that sends each message back and does nothing else
// that a server does. HTTP/2 is nghttp2's.
//
//   grpc_floor --port=8001 [--responses=N]
//
// With --responses it accepts streams, and sends N small messages for each one that it receives.

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "load/options.h"
#include "load/socket.h"

namespace nereid::bench {
namespace {

constexpr size_t kBufferSize = 256 * 1024;

nghttp2_nv Header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// How many responses a message in a stream gets, or 0 for unary calls; and one such response.
size_t response_count = 0;
std::string response;

struct Stream {
  std::string message;  // the received message, which is sent back; in a stream, the five bytes
                        // before a message
  size_t sent = 0;
  // For streams: the missing bytes of the message, the responses to be sent, whether there were
  // any, and whether nghttp2 waits for more.
  size_t message_left = 0;
  size_t owed = 0;
  bool has_begun = false;
  bool is_waiting = false;
};

// Finished streams, whose memory is reused: new memory for each would cost more than everything
// else.
std::vector<Stream*>& Ended() {
  static std::vector<Stream*> ended;
  return ended;
}

Stream* NewStream() {
  if (Ended().empty()) return new Stream;
  Stream* stream = Ended().back();
  Ended().pop_back();
  stream->message.clear();
  stream->sent = stream->message_left = stream->owed = 0;
  stream->has_begun = stream->is_waiting = false;
  return stream;
}

Stream* Find(nghttp2_session* session, int32_t id) {
  return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
}

int OnBegin(nghttp2_session* session, const nghttp2_frame* frame, void*) {
  if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, NewStream());
  }
  return 0;
}

ssize_t ReadResponses(nghttp2_session*, int32_t, uint8_t* to, size_t room, uint32_t*,
                      nghttp2_data_source* source, void*) {
  auto& stream = *static_cast<Stream*>(source->ptr);
  size_t size = 0;
  for (; stream.owed > 0 && size + response.size() <= room; --stream.owed) {
    std::memcpy(to + size, response.data(), response.size());
    size += response.size();
  }
  stream.is_waiting = size == 0;
  return size == 0 ? ssize_t{NGHTTP2_ERR_DEFERRED} : static_cast<ssize_t>(size);
}

void Owe(nghttp2_session* session, int32_t id, Stream& stream) {
  stream.owed += response_count;
  if (!stream.has_begun) {
    stream.has_begun = true;
    const nghttp2_nv headers[] = {Header(":status", "200"),
                                  Header("content-type", "application/grpc")};
    nghttp2_data_provider body{{.ptr = &stream}, ReadResponses};
    nghttp2_submit_response(session, id, headers, 2, &body);
  } else if (stream.is_waiting) {
    stream.is_waiting = false;
    nghttp2_session_resume_data(session, id);
  }
}

void TakeMessages(nghttp2_session* session, int32_t id, Stream& stream, std::string_view data) {
  while (!data.empty()) {
    if (stream.message_left == 0) {
      const std::string_view part = data.substr(0, 5 - stream.message.size());
      stream.message.append(part);
      data.remove_prefix(part.size());
      if (stream.message.size() < 5) return;
      for (const char byte : stream.message) {
        stream.message_left = (stream.message_left << 8 | static_cast<uint8_t>(byte)) & 0xFFFFFFFF;
      }
      stream.message.clear();
    }
    const size_t taken = std::min(stream.message_left, data.size());
    data.remove_prefix(taken);
    stream.message_left -= taken;
    if (stream.message_left == 0) Owe(session, id, stream);
  }
}

int OnData(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t size, void*) {
  Stream* const stream = Find(session, id);
  if (stream != nullptr && response_count > 0) {
    TakeMessages(session, id, *stream, {reinterpret_cast<const char*>(data), size});
  } else if (stream != nullptr) {
    stream->message.append(reinterpret_cast<const char*>(data), size);
    if (stream->message.size() == size && size >= 5) {
      const auto length = size_t{data[1]} << 24 | data[2] << 16 | data[3] << 8 | data[4];
      stream->message.reserve(length + 5);
    }
  }
  return 0;
}

ssize_t ReadMessage(nghttp2_session* session, int32_t id, uint8_t* to, size_t room, uint32_t* flags,
                    nghttp2_data_source* source, void*) {
  auto& stream = *static_cast<Stream*>(source->ptr);
  const size_t size = std::min(room, stream.message.size() - stream.sent);
  std::memcpy(to, stream.message.data() + stream.sent, size);
  stream.sent += size;
  if (stream.sent == stream.message.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const nghttp2_nv trailers[] = {Header("grpc-status", "0")};
    nghttp2_submit_trailer(session, id, trailers, 1);
  }
  return static_cast<ssize_t>(size);
}

int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void*) {
  Stream* stream = Find(session, frame->hd.stream_id);
  const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (stream == nullptr || frame->hd.type != NGHTTP2_DATA || !is_end) return 0;
  const nghttp2_nv headers[] = {Header(":status", "200"),
                                Header("content-type", "application/grpc")};
  nghttp2_data_provider body{{.ptr = stream}, ReadMessage};
  return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &body);
}

int OnClose(nghttp2_session* session, int32_t id, uint32_t, void*) {
  if (Stream* stream = Find(session, id)) Ended().push_back(stream);
  return 0;
}

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBegin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    constexpr int32_t kWindow = 1 << 30;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow},
                                               {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 1 << 20}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 3);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow);
  }
  ~Connection() {
    nghttp2_session_del(session_);
    close(fd_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  bool is_sending() const { return sent_ < outbox_.size(); }

  // Read and Write return false when the connection is closed.
  bool Read(std::vector<uint8_t>& buffer) {
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    return nghttp2_session_mem_recv(session_, buffer.data(), static_cast<size_t>(n)) >= 0;
  }

  bool Write() {
    for (;;) {
      while (outbox_.size() < kBufferSize) {
        const uint8_t* data = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_, &data);
        if (size < 0) return false;
        if (size == 0) break;
        outbox_.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
      }
      if (outbox_.empty()) return true;
      while (is_sending()) {
        const ssize_t n = send(fd_, outbox_.data() + sent_, outbox_.size() - sent_, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN;
        sent_ += static_cast<size_t>(n);
      }
      outbox_.clear();
      sent_ = 0;
    }
  }

 private:
  const int fd_;
  nghttp2_session* session_ = nullptr;
  std::string outbox_;
  size_t sent_ = 0;
};

void Serve(int port) {
  const int listener = ListenAt(port);
  Poller poller;
  poller.Add(listener, nullptr);
  std::vector<uint8_t> buffer(kBufferSize);
  for (;;) {
    poller.Wait(-1, [&](void* user, uint32_t events) {
      if (user == nullptr) {
        auto* accepted = new Connection(AcceptFrom(listener));
        poller.Add(accepted->fd(), accepted);
        return;
      }
      auto* connection = static_cast<Connection*>(user);
      const bool was_sending = connection->is_sending();
      const bool can_read = (events & ~uint32_t{EPOLLOUT}) != 0;
      if ((can_read && !connection->Read(buffer)) || !connection->Write()) {
        delete connection;
      } else if (connection->is_sending() != was_sending) {
        poller.WantWrite(connection->fd(), connection, connection->is_sending());
      }
    });
  }
}

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  using namespace nereid::bench;
  const Options options(argc, argv);
  response_count = options.Count("responses", 0);
  // Field 2 of a ModelStreamInferResponse, with the length of a small response.
  response = std::string("\0\0\0\0\x62\x12\x60", 7) + std::string(0x60, 'x');
  Serve(static_cast<int>(options.Count("port", 8001)));
}
