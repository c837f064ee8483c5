// SPDX-License-Identifier: Apache-2.0
// A gRPC client on one connection with the functions that a load needs: it sends prepared messages
// and counts received ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "loadgen/stream.h"

struct nghttp2_session;

namespace nereid::loadgen {

// A call, which is a stream of the connection. Its owner keeps it until the connection reports its
// end.
struct GrpcCall {
  int32_t stream_id = -1;
  std::string_view outgoing;  // of the message being sent; begins with its length
  size_t sent = 0;
  bool is_unary = true;
  bool ends_here = false;   // of a stream: no more messages will be sent
  bool is_waiting = false;  // of a stream: there is nothing to send yet
  // The length prefix of the message being received.
  std::string prefix;
  size_t message_left = 0;
  std::string message;  // all of it or its beginning
  int status = -1;
  std::string status_message;
  void* owner = nullptr;
};

// What every call of a connection says about itself.
struct GrpcHead {
  std::string method;     // "/package.Service/Method"
  std::string authority;  // "host:port"
  bool is_tls = false;
  std::vector<std::pair<std::string, std::string>> metadata;  // names in lower case
};

// A connection. Confined to one thread.
class GrpcConnection {
 public:
  struct Events {
    // Called when a message was received; `call.message` has the bytes that were kept.
    std::function<void(GrpcCall&)> on_message;
    // Called when the call is closed; `call.status` is its status, -1 without one.
    std::function<void(GrpcCall&)> on_close;
  };

  // `keep_bytes` is how much of each message is kept. `head` outlives this.
  GrpcConnection(Stream stream, const GrpcHead& head, size_t keep_bytes, Events events);
  ~GrpcConnection();
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  int fd() const { return stream_.fd(); }
  bool was_established() const { return stream_.was_established(); }
  // Whether the connection waits for space in the socket's buffer.
  bool wants_write = false;

  // Begins a call that sends the framed message. The caller keeps its bytes alive until the call is
  // closed. UNAVAILABLE if the server takes no more calls on this connection.
  base::Status Begin(GrpcCall& call, std::string_view message);
  // Sends another message in a stream. REQUIRES: the previous one was sent.
  void Send(GrpcCall& call, std::string_view message);
  // Ends the sending side of a stream.
  void End(GrpcCall& call);
  // Cancels the call, about which nothing is reported any more.
  void Abandon(GrpcCall& call);

  // Reads from the socket. UNAVAILABLE if the connection has ended.
  base::Status Receive();
  // Sends what is queued; returns whether the socket accepted everything. UNAVAILABLE if the
  // connection has ended.
  base::Result<bool> Flush();

 private:
  struct Callbacks;

  void TakeData(GrpcCall& call, std::string_view data);
  base::Status Ended() const;

  Stream stream_;
  const GrpcHead& head_;
  const size_t keep_bytes_;
  const Events events_;
  nghttp2_session* session_ = nullptr;
  std::unique_ptr<uint8_t[]> buffer_;
  std::string outbox_;
  size_t outbox_sent_ = 0;
};

}  // namespace nereid::loadgen
