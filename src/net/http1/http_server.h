// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server: it parses heads, collects bodies within limits and writes replies; it does
// not depend on what is served. A frontend implements HttpHandler; each request reaches it as an
// HttpExchange, to which it replies once, from any thread.
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
// and large bodies are received directly into their own buffer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/budget.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "http1/http_exchange.h"
#include "http1/http_head.h"
#include "http1/http_reply.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "net/tls.h"

namespace nereid::http1 {

// How the body of a request is to be received.
struct HttpBodyPlan {
  static constexpr size_t kNoSplit = SIZE_MAX;

  // Larger bodies reach the handler with body_truncated().
  size_t max_bytes = 0;
  // The byte of the body that must be 64-byte aligned, because data that is read in place begins
  // there. kNoSplit: there is none.
  size_t split = kNoSplit;
  // The request is to be refused whatever its body is: it reaches the handler without it, with
  // body_truncated(), as soon as its head has arrived, and the connection ends with the reply.
  bool is_unwanted = false;
};

// The body of an error reply that the server itself sends.
struct HttpErrorBody {
  std::string_view content_type;
  std::string text;
};

// Thread-safe: called on every reactor. Outlives the server.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called when the head of a request with a body has been parsed. `max_bytes` is the limit of
  // HttpServerOptions, and the default plan.
  virtual HttpBodyPlan PlanBody(const HttpHead& head, size_t max_bytes);
  // Returns the buffer for a body that has not arrived whole with its head: at least `size` bytes,
  // whose first byte need not be the body's. Empty, the default: the server allocates one.
  virtual base::BufferRef BodyBuffer(const HttpHead& head, const HttpBodyPlan& plan, size_t size);
  // Returns `text` as the body of a reply to a request that Handle does not see (malformed, too
  // slow), or that was dropped without a reply. Plain text by default.
  virtual HttpErrorBody ErrorBody(std::string_view text);
  // Called on the reactor; must not block.
  virtual void Handle(HttpExchangePtr exchange) = 0;
};

// The address of a server, and its limits for clients.
struct HttpServerOptions {
  net::ListenerOptions listener;
  net::TlsOptions tls;
  size_t max_header_bytes = 64 << 10;
  // The limit for bodies, unless the handler plans otherwise (HttpBodyPlan::max_bytes).
  size_t max_body_bytes = size_t{64} << 20;
  // Counts the memory of bodies that do not arrive with their head, and of large heads; null: no
  // limit. Outlives the server and all bodies.
  base::Budget* received_bytes = nullptr;
  // Counts what waits for clients that do not read; null: no limit. Outlives the server.
  base::Budget* unsent_bytes = nullptr;
  // How many bytes of an oversize body are read and discarded so that the client, which may still
  // be sending, sees the reply; beyond this the connection is closed after the reply.
  uint64_t max_discard_bytes = uint64_t{4} << 30;
  size_t max_stream_buffer = size_t{1} << 20;  // waiting in one streamed reply
  // Timeouts are checked about once a second.
  std::chrono::milliseconds header_timeout{30'000};  // from the first byte of a head to its last
  std::chrono::milliseconds body_timeout{60'000};    // without a byte of a body arriving
  // The average rate that a body needs over every window.
  uint64_t min_body_bytes_per_s = 240;
  std::chrono::milliseconds body_window{30'000};
  // The average rate at which a client has to read a reply over every such window.
  uint64_t min_read_bytes_per_s = 240;
  std::chrono::milliseconds drain_receive_timeout{2'000};  // limits both during Drain
  // The time in which Drain expects one more request on connections that are idle.
  std::chrono::milliseconds drain_idle_time{100};
  std::chrono::milliseconds write_timeout{120'000};   // without any byte of a reply taken
  std::chrono::milliseconds idle_timeout{3'600'000};  // between requests
  // After this, a tenth more or less, a connection ends with its next reply or when it is idle, so
  // that clients spread over servers again; 0: never.
  std::chrono::milliseconds max_connection_age{0};
};

// Thread-safe.
class HttpServer {
 public:
  // `pool` and `handler` outlive the server. Errors are those of Listener::Start, or of the TLS
  // files.
  static base::Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                         net::ReactorPool& pool,
                                                         HttpHandler& handler);
  // Closes everything at once, like Drain with a deadline that has passed, and waits until every
  // exchange has a reply or was dropped by its frontend. Not from a reactor.
  ~HttpServer();

  uint16_t port() const;
  // Returns the number of open connections.
  size_t connections() const;

  // Closes the listening socket. Connections continue.
  void StopAccepting();
  // Stops accepting, and ends each connection with the reply to its current request ("Connection:
  // close"). A client whose connection is idle may be sending a request just now: such connections
  // are closed `drain_idle_time` later. At the deadline the rest is closed. Returns true if all
  // finished. Not from a reactor.
  bool Drain(base::TimePoint deadline);

  class Core;  // what the connections see of their server

 private:
  HttpServer(std::unique_ptr<Core> core, std::unique_ptr<net::Listener> listener);
  std::unique_ptr<Core> core_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace nereid::http1
