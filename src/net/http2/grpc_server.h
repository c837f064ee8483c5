// SPDX-License-Identifier: Apache-2.0
// A gRPC server that does not depend on what is served: HTTP/2 connections on the reactors,
// messages in and out, deadlines, cancellation, compression, flow control and keep-alive. A
// frontend implements GrpcHandler and, for each call, GrpcCallEvents.
//
//   class Echo : public GrpcHandler, GrpcCallEvents ...
//   auto server = GrpcServer::Start({.listener = {.port = 8001}}, pool, handler);
//
// In steady state a unary call costs no lock and no allocation, and calls that arrive together
// share one recv and one sendmsg. The thread that finishes a call writes to the socket, unless
// another thread is writing already, which then also sends this response.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/budget.h"
#include "base/clock.h"
#include "base/status.h"
#include "http2/grpc_call.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "net/tls.h"

namespace nereid::http2 {

enum class GrpcCompressionLevel : uint8_t { kNone, kLow, kMedium, kHigh };

struct GrpcServerOptions {
  net::ListenerOptions listener;
  net::TlsOptions tls;
  size_t max_message_bytes = INT32_MAX;  // received, also after decompression
  size_t max_header_list_bytes = 64 << 10;
  uint32_t max_concurrent_streams = 8192;
  uint32_t max_frame_bytes = 1 << 20;
  // If the unfinished messages of one connection exceed this, its client gets no further window.
  size_t connection_budget_bytes = size_t{64} << 20;
  // Limits the declared size of the incomplete messages of one connection, unless there is only
  // one.
  size_t max_incomplete_bytes = size_t{4} << 30;
  // If the unsent bytes of one stream exceed this, its further requests wait.
  size_t max_stream_backlog_bytes = size_t{16} << 20;
  GrpcCompressionLevel response_compression = GrpcCompressionLevel::kNone;
  // The flags --grpc-keepalive-* and --grpc-http2-*, with Triton's defaults.
  std::chrono::milliseconds keepalive_time{7'200'000};
  std::chrono::milliseconds keepalive_timeout{20'000};
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  std::chrono::milliseconds min_recv_ping_interval_without_data{300'000};
  int max_ping_strikes = 2;
  std::optional<std::chrono::milliseconds> max_connection_age;
  std::optional<std::chrono::milliseconds> max_connection_age_grace;
  // The average rate that an incomplete message needs over every window.
  uint64_t min_message_bytes_per_s = 240;
  std::chrono::milliseconds message_window{30'000};
  // How long pending output may wait without any byte taken.
  std::chrono::milliseconds write_timeout{300'000};
  // From the start of the connection to the client's first settings.
  std::chrono::milliseconds preface_timeout{30'000};
  // How many streams a client may reset every second, on average (EventLimit), and how many frames
  // it may send that belong to no call: pings, settings, priorities, and empty ones.
  uint32_t resets_per_second = 1000;
  uint32_t control_frames_per_second = 1000;
  // Counts the memory of messages that do not arrive in one piece; null: no limit. Outlives the
  // server and all messages.
  base::Budget* received_bytes = nullptr;
  // Counts what waits for clients that do not read; null: no limit. Outlives the server.
  base::Budget* unsent_bytes = nullptr;
  // Count the connections that were closed for one of the rates above; null: are not counted.
  base::Budget* reset_refusals = nullptr;
  base::Budget* control_refusals = nullptr;
};

// Thread-safe.
class GrpcServer {
 public:
  // `pool` and `handler` outlive the server. Errors are those of Listener::Start, or of the TLS
  // files.
  static base::Result<std::unique_ptr<GrpcServer>> Start(const GrpcServerOptions& options,
                                                         net::ReactorPool& pool,
                                                         GrpcHandler& handler);
  // Closes everything at once and waits until every call has been released. Not from a reactor.
  ~GrpcServer();

  uint16_t port() const;
  size_t connections() const;

  // Closes the listening socket. Connections continue.
  void StopAccepting();
  // Stops accepting, tells every client to disconnect, and lets calls finish until the deadline,
  // when the rest is closed. Returns true if all finished. Not from a reactor.
  bool Drain(base::TimePoint deadline);

  class Core;  // for the connections

 private:
  explicit GrpcServer(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace nereid::http2
