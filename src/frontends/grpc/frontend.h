// SPDX-License-Identifier: Apache-2.0
// KServe v2 over gRPC: the inference service, health and reflection on one port.
//
//   auto frontend = grpc::Frontend::Start({.server = {.listener = {.port = 8001}}},
//                                         {service, pool, rounds});
#pragma once

#include <memory>

#include "access/gate.h"
#include "base/clock.h"
#include "base/status.h"
#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "common/restrictions.h"
#include "core/budgets.h"
#include "http2/grpc_server.h"
#include "net/reactor.h"
#include "service/service.h"

namespace nereid::grpc {

// The flags --grpc-… that the frontend needs.
struct FrontendOptions {
  http2::GrpcServerOptions server;
  // The RPCs that need a header.
  common::Restrictions restrictions;
  // Knows who may do what; null: everybody may do everything. Outlives the frontend.
  access::Gate* gate = nullptr;
  // If another listener serves the control RPCs: the message to those who call them here.
  std::string control_is_elsewhere;
  // Which metadata become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  // The number of responses of decoupled models that may wait for the client of a stream.
  size_t max_unsent_responses = INT32_MAX;
  // The number of bytes of them.
  size_t max_unsent_bytes = size_t{64} << 20;
  // The number of requests of a stream that may be in progress.
  size_t max_stream_requests = 8192;
  // The budgets of which requests take their part; null: no limits. Outlives the frontend.
  core::Budgets* budgets = nullptr;
};

// What a frontend uses; all of it outlives the frontend.
struct FrontendParts {
  service::Service& service;
  net::ReactorPool& pool;
  const common::RoundExecutors& rounds;
};

// Thread-safe.
class Frontend {
 public:
  // Errors are those of net::Listener::Start.
  static base::Result<std::unique_ptr<Frontend>> Start(const FrontendOptions& options,
                                                       const FrontendParts& parts);
  // Closes everything at once and waits until the last request has completed. Not from a reactor.
  ~Frontend();

  uint16_t port() const;
  size_t connections() const;
  // From now on open streams take no more requests, and end as UNAVAILABLE once none of theirs is
  // in progress. Other calls are served as long as their connections last, because a client may
  // have sent them before it could know.
  void EndStreams();
  // Closes the port, tells clients to disconnect and lets calls finish until the deadline. Returns
  // whether all did. Not from a reactor.
  bool Drain(base::TimePoint deadline);

 private:
  class Handler;
  explicit Frontend(std::unique_ptr<Handler> handler);
  const std::unique_ptr<Handler> handler_;
  std::unique_ptr<http2::GrpcServer> server_;  // destroyed before the handler
};

}  // namespace nereid::grpc
