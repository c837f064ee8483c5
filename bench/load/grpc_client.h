// SPDX-License-Identifier: Apache-2.0
// The client's end of gRPC on one connection, as far as a load needs it: prepared messages out,
// messages counted in.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct nghttp2_session;

namespace nereid::bench {

// A call: a stream of the connection. Its owner keeps it until the connection says it is closed.
struct GrpcCall {
  int32_t stream_id = -1;
  std::string_view outgoing;  // of the message being sent; with its length in front
  size_t sent = 0;
  bool is_unary = true;
  bool ends_here = false;   // of a stream: nothing more will be sent
  bool is_waiting = false;  // of a stream: there was nothing to send
  // Of the message being received.
  std::string prefix;
  size_t message_left = 0;
  std::string message;  // its beginning, or all of it
  int status = -1;
  std::string status_message;
  void* owner = nullptr;
};

// A connection. Confined to one thread.
class GrpcConnection {
 public:
  struct Events {
    // A message came; `call.message` has what was kept of it.
    std::function<void(GrpcCall&)> on_message;
    // The call is over; `call.status` is its status, -1 without one.
    std::function<void(GrpcCall&)> on_close;
  };

  // `keep_bytes`: so much of each message is kept.
  GrpcConnection(int port, std::string method, size_t keep_bytes, Events events);
  ~GrpcConnection();
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  int fd() const { return fd_; }
  // For the owner: whether it waits for room in the socket.
  bool wants_write = false;

  // Begins a call that sends the framed message, whose bytes stay the caller's until it is over.
  void Begin(GrpcCall& call, std::string_view message);
  // Sends a further message in a stream, after the one before was sent.
  void Send(GrpcCall& call, std::string_view message);
  // Ends the sending side of a stream.
  void End(GrpcCall& call);

  // Takes what the socket has. Dies when the connection broke.
  void Receive();
  // Sends what is to be sent; returns whether the socket took all of it.
  bool Flush();

 private:
  struct Callbacks;

  void TakeData(GrpcCall& call, std::string_view data);

  const int fd_;
  const std::string method_;
  const std::string authority_;
  const size_t keep_bytes_;
  const Events events_;
  nghttp2_session* session_ = nullptr;
  std::unique_ptr<uint8_t[]> buffer_;
  std::string outbox_;
  size_t outbox_sent_ = 0;
};

}  // namespace nereid::bench
