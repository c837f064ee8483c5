// SPDX-License-Identifier: Apache-2.0
// What a server listens with: HTTP, gRPC, metrics and the entry points of clouds, over the engine
// that they serve. The program has one, and so has a server of the C API that is served to others
// (nereid/frontends.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "app/options.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "http/api_handler.h"
#include "http1/http_server.h"

namespace nereid::grpc {
struct FrontendOptions;
}

namespace nereid::app {

// Confined to the thread that made it, but for Answers.
class Frontends {
 public:
  // Starts nothing. The references outlive this.
  Frontends(const Options& options, engine::Engine& engine);
  Frontends(const Frontends&) = delete;
  Frontends& operator=(const Frontends&) = delete;
  ~Frontends();

  // Opens everything that needs no loaded model. An error names the service and the address.
  base::Status Listen();
  // Starts the services that need loaded models.
  base::Status ServeLoaded();

  // The ports listened on; 0 for a service that is off.
  struct Ports {
    uint16_t http = 0;
    uint16_t grpc = 0;
    uint16_t metrics = 0;
    uint16_t admin = 0;
    uint16_t admin_grpc = 0;
  };
  Ports ports() const;

  // Whether every event loop does what it is given within `patience`; logs if not. Thread-safe.
  bool Answers(std::chrono::milliseconds patience) const;

  // Refuses new requests and finishes those in flight. Returns whether no connection was closed
  // during a request. Metrics are served on.
  bool Drain(base::TimePoint deadline);
  void StopMetrics();

 private:
  struct Parts;

  // What all HTTP servers have in common.
  http1::HttpServerOptions HttpOptionsForAll() const;
  // The console, for the listeners that serve the control APIs.
  void MakeConsole();
  base::Status StartHttp();
  base::Status StartGrpc();
  base::Status StartMetrics();
  base::Status StartAdmin();
  base::Status StartAdminGrpc();
  http::ApiOptions MakeApiOptions() const;
  grpc::FrontendOptions MakeGrpcOptions() const;

  const Options& options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace nereid::app
