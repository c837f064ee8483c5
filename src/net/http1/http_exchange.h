// SPDX-License-Identifier: Apache-2.0
// One request in a frontend, and the right to reply to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "base/unique_function.h"
#include "http1/exchange_listener.h"
#include "http1/http_head.h"
#include "http1/http_reply.h"
#include "net/peer_identity.h"
#include "net/reactor.h"

namespace nereid::http1 {

class HttpExchange;
// Dropping an exchange without a reply sends a 500 and closes the connection.
struct HttpExchangeDropper {
  void operator()(HttpExchange* exchange) const;
};
// The right to reply; passed to HttpHandler::Handle and given up in Respond.
using HttpExchangePtr = std::unique_ptr<HttpExchange, HttpExchangeDropper>;

// One request and its one reply. Thread-compatible: one thread at a time, which may change.
class HttpExchange {
 public:
  const HttpHead& head() const { return request_.head; }

  // The whole body, contiguous, followed by at least 64 readable bytes. If the handler named a
  // split (HttpBodyPlan), that byte is 64-byte aligned.
  std::string_view body() const { return request_.body; }
  // Keeps body() (but not the head) alive beyond the reply; empty if there is no body.
  const base::BufferRef& body_buffer() const { return request_.body_buffer; }
  // Returns the same buffer to a caller that alone needs the body: the memory is freed with the
  // result, without waiting for the reply to be sent.
  base::BufferRef TakeBodyBuffer() { return std::move(request_.body_buffer); }
  // Whether the body was larger than the server's limit. If so, body() has its first bytes (up to
  // the split, at most the limit; none for chunked bodies), body_size() the true size as far as it
  // is known, and the rest was discarded.
  bool body_truncated() const { return request_.body_truncated; }
  uint64_t body_size() const { return request_.body_size; }
  // When the first byte of the head and the last byte of the body arrived (base::NowNs).
  uint64_t start_ns() const { return request_.start_ns; }
  uint64_t received_ns() const { return request_.received_ns; }

  net::Reactor& reactor() const { return *home_; }
  // Whether the process has few descriptors left, and this connection one of them: only health
  // requests may be served.
  bool is_crowded() const { return is_crowded_; }
  // See net::Connection.
  std::string PeerAddress() const;
  const net::PeerIdentity* peer_identity() const;

  // Keeps what the handler has found out about the sender until the exchange is over.
  void set_sender(std::shared_ptr<const void> sender) { sender_ = std::move(sender); }
  const std::shared_ptr<const void>& sender() const { return sender_; }
  // Calls `observer` with the status of the reply, on the thread that replies. Streamed replies do
  // not count.
  void set_on_reply(base::UniqueFunction<void(int status)> observer) {
    on_reply_ = std::move(observer);
  }

  // Sets complete header lines that the reply contains besides its own. They must stay valid until
  // the reply; call this before another thread may reply.
  void set_reply_lines(std::string_view lines) { reply_lines_ = lines; }
  // Makes a HEAD request look like a GET to the code that serves it; the reply is sent without its
  // body.
  void TreatHeadAsGet() {
    HttpMethod& method = request_.head.method_;
    if (method == HttpMethod::kHead) method = HttpMethod::kGet;
  }

  // Sets the only listener, or removes it if null, after which none of its calls is running. A
  // disconnect that already happened is reported at once, from inside this call.
  void SetEvents(HttpExchangeEvents* events);
  // Whether the client is known to have disconnected.
  bool disconnected() const { return listener_.disconnected(); }

  // Sends the reply from this thread as far as the socket takes it; the reactor sends the rest. The
  // views of the request are invalid when it returns (copies of body_buffer keep the body).
  static void Respond(HttpExchangePtr exchange, HttpReply reply);

  // Replies of unknown length, sent as chunks (to an HTTP/1.0 client: until close). StartStream
  // sends the head; `reply.text` and `reply.parts` must be empty. Then any number of WriteChunk
  // follow, each of which copies what the socket does not take, and EndStream instead of Respond. A
  // first chunk is sent with the head, a last one with the end. StartStream returns the same as
  // WriteChunk.
  bool StartStream(const HttpReply& reply, std::string_view chunk = {});
  // Returns false if more than the stream limit waits for the client: the chunk was still accepted,
  // but the caller should pause until OnStreamWritable. Chunks after a disconnect are discarded.
  bool WriteChunk(std::string_view chunk);
  static void EndStream(HttpExchangePtr exchange, std::string_view chunk = {});

  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

 protected:
  HttpExchange() = default;
  ~HttpExchange() = default;

  HttpRequest request_;
  std::string_view reply_lines_;
  std::shared_ptr<const void> sender_;
  base::UniqueFunction<void(int status)> on_reply_;
  bool omit_body_ = false;  // of the reply: the request was a HEAD
  net::Reactor* home_ = nullptr;
  ExchangeListener listener_;
  bool is_crowded_ = false;
};

}  // namespace nereid::http1
