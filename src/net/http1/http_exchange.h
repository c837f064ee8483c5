// SPDX-License-Identifier: Apache-2.0
// One request on its way through a frontend, and the right to reply to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "http1/exchange_listener.h"
#include "http1/http_head.h"
#include "http1/http_reply.h"
#include "net/reactor.h"

namespace nereid::http1 {

class HttpExchange;
// Dropping an exchange without a reply sends a 500 and closes the connection.
struct HttpExchangeDropper {
  void operator()(HttpExchange* exchange) const;
};
// The right to answer; handed to HttpHandler::Handle and given up in Respond.
using HttpExchangePtr = std::unique_ptr<HttpExchange, HttpExchangeDropper>;

// One request and its one reply. Thread-compatible: one thread at a time, which may change.
class HttpExchange {
 public:
  const HttpHead& head() const { return request_.head; }

  // The whole body, contiguous, followed by at least 64 readable bytes. When the handler named a
  // split (HttpBodyPlan), that byte of it is 64-byte aligned.
  std::string_view body() const { return request_.body; }
  // Keeps body() (not the head) alive beyond the reply; empty when there is no body.
  const base::BufferRef& body_buffer() const { return request_.body_buffer; }
  // The same for a caller that alone needs the body: its memory goes with what is returned, and
  // need not wait for the reply to be sent.
  base::BufferRef TakeBodyBuffer() { return std::move(request_.body_buffer); }
  // True when the body was larger than the server's limit. body() then holds its first bytes (up
  // to the split, at most the limit; nothing for chunked ones), body_size() the true
  // size as far as it is known, and the rest was thrown away.
  bool body_truncated() const { return request_.body_truncated; }
  uint64_t body_size() const { return request_.body_size; }
  // When the first byte of the head and the last byte of the body were seen (base::NowNs).
  uint64_t start_ns() const { return request_.start_ns; }
  uint64_t received_ns() const { return request_.received_ns; }

  net::Reactor& reactor() const { return *home_; }
  // The process has few descriptors left, and this connection one of them: only questions of health
  // are to be answered.
  bool is_crowded() const { return is_crowded_; }

  // Complete header lines that the reply carries besides its own. They must stay valid until the
  // reply; call it before another thread may reply.
  void set_reply_lines(std::string_view lines) { reply_lines_ = lines; }
  // Makes a HEAD request look like a GET to the code that serves it; the reply goes without its
  // body.
  void TreatHeadAsGet() {
    HttpMethod& method = request_.head.method_;
    if (method == HttpMethod::kHead) method = HttpMethod::kGet;
  }

  // At most one listener; null removes it, after which (on return) none of its calls is running. A
  // disconnect that already happened is reported at once, from inside this call.
  void SetEvents(HttpExchangeEvents* events);
  // True once the client is known to be gone.
  bool disconnected() const { return listener_.disconnected(); }

  // Sends the reply from this thread as far as the socket takes it; the reactor does the rest. The
  // views of the request are dead when it returns (the body lives on in body_buffer's copies).
  static void Respond(HttpExchangePtr exchange, HttpReply reply);

  // Replies of unknown length, sent as chunks (to an HTTP/1.0 client: until close). StartStream
  // sends the head; `reply.text` and `reply.parts` must be empty. Then any number of WriteChunk,
  // each copied as far as the socket does not take it, and EndStream in place of Respond.
  // A first chunk goes out with the head, a last one with the end. StartStream returns what
  // WriteChunk would.
  bool StartStream(const HttpReply& reply, std::string_view chunk = {});
  // False when more than the stream limit waits for the client: the chunk was still taken, but the
  // caller should pause until OnStreamWritable. Chunks after a disconnect are thrown away.
  bool WriteChunk(std::string_view chunk);
  static void EndStream(HttpExchangePtr exchange, std::string_view chunk = {});

  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

 protected:
  HttpExchange() = default;
  ~HttpExchange() = default;

  HttpRequest request_;
  std::string_view reply_lines_;
  bool omit_body_ = false;  // of the reply: the request was a HEAD
  net::Reactor* home_ = nullptr;
  ExchangeListener listener_;
  bool is_crowded_ = false;
};

}  // namespace nereid::http1
