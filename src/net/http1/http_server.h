// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server: it parses heads, collects bodies within limits and writes replies. Of
// inference it knows that a body may have a tensor part that wants alignment
// (HttpHandler::BodySplit), and that errors of its own are JSON. A frontend implements HttpHandler;
// each request reaches it as an HttpExchange, which it answers once, from any thread.
//
//   class Hello : public HttpHandler {
//     void Handle(HttpExchangePtr exchange) override {
//       HttpExchange::Respond(std::move(exchange), {.status = 200, .content_type = "text/plain",
//                                                   .text = "hello"});
//     }
//   };
//   auto server = HttpServer::Start({.listener = {.port = 8000}}, pool, hello);
//
// In steady state a request costs one recv and one sendmsg, no lock and no allocation: the exchange
// is embedded in its connection, header values and small bodies are views of the receive buffer,
// and large bodies are received straight into a buffer of their own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/buffer.h"
#include "base/status.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "net/tls.h"

namespace nereid::http1 {

enum class HttpMethod : uint8_t { kGet, kHead, kPost, kPut, kDelete, kOptions, kPatch, kOther };

struct HttpHeader {
  std::string_view name;   // as the client spelt it
  std::string_view value;  // without surrounding blanks
};

// The request line and header fields. Immutable once a handler sees it; all views live as long as
// the exchange.
class HttpHead {
 public:
  static constexpr size_t kMaxHeaders = 96;

  HttpMethod method() const { return method_; }
  std::string_view method_text() const { return method_text_; }
  // The target as sent, percent-encoding untouched: path[?query].
  std::string_view target() const { return target_; }
  std::string_view path() const { return target_.substr(0, target_.find('?')); }
  // Without the question mark.
  std::string_view query() const;
  // 10 or 11.
  int version() const { return version_; }
  // The first field of that name, in any case. Quickest where both spell it the same way.
  std::optional<std::string_view> FindHeader(std::string_view name) const;
  // The same; empty when absent.
  std::string_view Header(std::string_view name) const { return FindHeader(name).value_or(""); }
  std::span<const HttpHeader> headers() const { return {headers_.data(), header_count_}; }
  // Absent for chunked bodies and for requests without one.
  std::optional<uint64_t> content_length() const { return content_length_; }
  bool chunked() const { return chunked_; }

 private:
  friend class HttpHeadParser;
  friend class Http1Connection;
  friend class HttpExchange;

  HttpMethod method_ = HttpMethod::kOther;
  bool chunked_ = false;
  bool keep_alive_ = false;
  bool expect_continue_ = false;
  int version_ = 11;
  std::string_view method_text_;
  std::string_view target_;
  std::optional<uint64_t> content_length_;
  size_t header_count_ = 0;
  std::array<HttpHeader, kMaxHeaders> headers_;
};

// Bytes that a reply sends from where they lie. `owner` (when set) keeps them alive.
struct HttpBodyPart {
  const void* data = nullptr;
  size_t size = 0;
  base::BufferRef owner;
};

// Keeps whatever a reply's parts point into until the socket has them.
class HttpReplyOwner {
 public:
  // Called exactly once, on any thread, when the bytes of the reply are not needed any more: sent,
  // or the connection is gone. May run inside Respond.
  virtual void ReplySent() = 0;

 protected:
  ~HttpReplyOwner() = default;
};

// One reply. The body is `text` followed by `parts`; Content-Length is their sum.
struct HttpReply {
  int status = 200;
  // Copied by Respond, as are `headers`. Empty: no Content-Type line.
  std::string_view content_type;
  // Further complete lines, each "Name: value\r\n".
  std::string_view headers;
  // First body bytes. Needed during Respond only: what the socket does not take is copied.
  std::string_view text;
  // Not copied. The array is needed during Respond only, the bytes until sent (owner of each part,
  // or `owner`).
  std::span<HttpBodyPart> parts;
  HttpReplyOwner* owner = nullptr;
  // Closes the connection after this reply.
  bool close = false;
};

// What can happen to an exchange between Handle and its reply. Calls come on the connection's
// reactor; none starts after Respond, EndStream or SetEvents(nullptr) returned. They must be brief;
// they may call Respond or EndStream of their own exchange.
class HttpExchangeEvents {
 public:
  // The client closed or reset the connection. The exchange must still be answered (or dropped).
  virtual void OnDisconnect() = 0;
  // A stream that refused a chunk for lack of room takes chunks again.
  virtual void OnStreamWritable() {}

 protected:
  ~HttpExchangeEvents() = default;
};

// State that a frontend keeps with a connection and finds again at its next request, so that it
// need not allocate it per request.
class HttpUserState {
 public:
  virtual ~HttpUserState() = default;
};

class HttpExchange;
// Dropping an exchange unanswered sends a 500 and closes the connection.
struct HttpExchangeDropper {
  void operator()(HttpExchange* exchange) const;
};
// The right to answer; handed to HttpHandler::Handle and given up in Respond.
using HttpExchangePtr = std::unique_ptr<HttpExchange, HttpExchangeDropper>;

// One request and its one reply. Thread-compatible: one thread at a time, which may change.
class HttpExchange {
 public:
  const HttpHead& head() const { return head_; }

  // The whole body, contiguous, followed by at least 64 readable bytes. Byte BodySplit() of it is
  // 64-byte aligned when the handler named a split.
  std::string_view body() const { return body_; }
  // Keeps body() (not the head) alive beyond the reply; empty when there is no body.
  const base::BufferRef& body_buffer() const { return body_buffer_; }
  // The same for whoever alone needs the body: it goes with what is returned, and need not wait for
  // the reply to be sent.
  base::BufferRef TakeBodyBuffer() { return std::move(body_buffer_); }
  // True when the body was larger than the server's limit. body() then holds its first bytes (as
  // many as BodySplit named, at most the limit; nothing for chunked ones), body_size() the true
  // size as far as it is known, and the rest was thrown away.
  bool body_truncated() const { return body_truncated_; }
  uint64_t body_size() const { return body_size_; }
  // When the first byte of the head and the last byte of the body were seen (base::NowNs).
  uint64_t start_ns() const { return start_ns_; }
  uint64_t received_ns() const { return received_ns_; }

  net::Reactor& reactor() const { return *home_; }
  // The process has few descriptors left, and this connection one of them: only questions of health
  // are to be answered.
  bool is_crowded() const { return is_crowded_; }

  // Complete header lines that the reply carries besides its own, whoever writes it. They must stay
  // valid until the reply; call it before anybody else may answer.
  void set_reply_lines(std::string_view lines) { reply_lines_ = lines; }
  // Makes a HEAD request look like a GET to whoever answers it; the reply goes without its body.
  void TreatHeadAsGet() {
    if (head_.method_ == HttpMethod::kHead) head_.method_ = HttpMethod::kGet;
  }

  // Null until a frontend sets it; stays with the connection from request to request.
  HttpUserState* user_state() const { return user_state_.get(); }
  void set_user_state(std::unique_ptr<HttpUserState> state) { user_state_ = std::move(state); }

  // At most one listener; null removes it, after which (on return) none of its calls is running. A
  // disconnect that already happened is reported at once, from inside this call.
  void SetEvents(HttpExchangeEvents* events);
  // True once the client is known to be gone.
  bool disconnected() const { return disconnected_.load(std::memory_order_relaxed); }

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

  HttpHead head_;
  std::string_view reply_lines_;
  bool omit_body_ = false;  // of the reply: the request was a HEAD
  std::string_view body_;
  base::BufferRef body_buffer_;
  bool body_truncated_ = false;
  uint64_t body_size_ = 0;
  uint64_t start_ns_ = 0;
  uint64_t received_ns_ = 0;
  net::Reactor* home_ = nullptr;
  std::unique_ptr<HttpUserState> user_state_;
  std::atomic<bool> disconnected_{false};
  bool is_crowded_ = false;
};

// Thread-safe: called on every reactor. Outlives the server.
class HttpHandler {
 public:
  static constexpr size_t kNoSplit = SIZE_MAX;

  virtual ~HttpHandler() = default;
  // Where in the body the JSON head ends and tensor bytes begin (Inference-Header-Content-Length),
  // so that the body can be placed with that byte aligned. Called when the head has been parsed.
  virtual size_t BodySplit(const HttpHead& head);
  // The largest body to take for a request, in place of HttpServerOptions::max_body_bytes, given
  // what BodySplit said of it.
  virtual size_t MaxBodyBytes(size_t split, size_t configured);
  // Where to receive a body of `size` bytes that has not come whole with its head: a buffer of at
  // least that capacity, whose first byte is not needed to be the body's. Empty, as by default: one
  // of the server's own.
  virtual base::BufferRef BodyBuffer(const HttpHead& head, size_t split, size_t size);
  // On the reactor; must not block.
  virtual void Handle(HttpExchangePtr exchange) = 0;
};

struct HttpServerOptions {
  net::ListenerOptions listener;
  net::TlsOptions tls;
  size_t max_header_bytes = 64 << 10;
  // Larger bodies reach the handler with body_truncated().
  size_t max_body_bytes = size_t{64} << 20;
  // Bytes of an oversize body that are read and thrown away so that the client, which may still be
  // sending, sees the reply; beyond it the connection is closed after the reply.
  uint64_t max_discard_bytes = uint64_t{4} << 30;
  size_t max_stream_buffer = size_t{1} << 20;  // waiting in one streamed reply
  // Timeouts are looked at about once a second.
  std::chrono::milliseconds header_timeout{30'000};  // from the first byte of a head to its last
  std::chrono::milliseconds body_timeout{60'000};    // without a byte of a body arriving
  // What a body must bring on average, over every window of it.
  uint64_t min_body_bytes_per_s = 240;
  std::chrono::milliseconds body_window{30'000};
  std::chrono::milliseconds drain_receive_timeout{2'000};  // bounds both of them during Drain
  std::chrono::milliseconds write_timeout{120'000};        // without a byte of a reply being taken
  std::chrono::milliseconds idle_timeout{3'600'000};       // between requests
  // After this, a tenth more or less, a connection ends with its next reply or when it is idle, so
  // that clients spread over servers anew; 0: never.
  std::chrono::milliseconds max_connection_age{0};
};

// Thread-safe.
class HttpServer {
 public:
  // `pool` and `handler` outlive the server. Errors as Listener::Start, or of the TLS files.
  static base::Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                         net::ReactorPool& pool,
                                                         HttpHandler& handler);
  // Closes everything at once, as Drain with a deadline that has passed, and waits until every
  // exchange has been answered or dropped by its frontend. Not from a reactor.
  ~HttpServer();

  uint16_t port() const;
  // Connections open now.
  size_t connections() const;

  // Closes the listening socket. Connections go on.
  void StopAccepting();
  // Stops accepting, closes idle connections, and lets busy ones finish their request ("Connection:
  // close" on the reply) until the deadline, when the rest is closed. True when none had to be. Not
  // from a reactor.
  bool Drain(base::TimePoint deadline);

  class Core;  // what the connections see of their server

 private:
  HttpServer(std::unique_ptr<Core> core, std::unique_ptr<net::Listener> listener);
  std::unique_ptr<Core> core_;
  std::unique_ptr<net::Listener> listener_;
};

// The reason phrase evhtp sends for a status, "OK" for 200.
std::string_view HttpReason(int status);

}  // namespace nereid::http1
