// SPDX-License-Identifier: Apache-2.0
// The v2 REST API on http1::HttpServer: every route of http/route.h, that is health, metadata,
// configuration, infer and generate, statistics, the repository, shared memory, trace and log
// settings. Also the metrics page, for a listener of its own.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "common/restrictions.h"
#include "http/cors.h"
#include "http/dialect.h"
#include "http/http_generate.h"
#include "http/infer_request.h"
#include "http/json_handler.h"
#include "http/route.h"
#include "http1/http_server.h"
#include "net/reactor.h"
#include "service/service.h"

namespace nereid::http {

// --http-…, as the API needs them.
struct ApiOptions {
  // Of JSON heads, JSON tensors, raw requests and decompressed bodies (--http-max-input-size).
  size_t max_input_bytes = size_t{64} << 20;
  // Which routes need a header.
  common::Restrictions restrictions;
  // Which headers become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  CorsOptions cors;
  StreamLimits stream_limits;
};

// Thread-safe. Outlives the server that it serves, and every request of it.
class ApiHandler final : public JsonHandler {
 public:
  // `pool` is the one the server runs on; `service` and `rounds` outlive the handler.
  ApiHandler(const ApiOptions& options, net::ReactorPool& pool, service::Service& service,
             const common::RoundExecutors& rounds);
  ~ApiHandler() override;

  http1::HttpBodyPlan PlanBody(const http1::HttpHead& head, size_t max_bytes) override;
  base::BufferRef BodyBuffer(const http1::HttpHead& head, const http1::HttpBodyPlan& plan,
                             size_t size) override;
  void Handle(http1::HttpExchangePtr exchange) override;

  // For entry points with paths of their own: what Handle does once it knows the route.
  // Restrictions hold here as they do there; methods are the caller's business. The texts of
  // `route` are needed until this returns.
  void Serve(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // Whether a request to that route may go on; else it has been answered.
  bool Admit(http1::HttpExchangePtr& exchange, const Route& route) const;

 private:
  // Answers a preflight, and sees to the lines that a browser wants on every reply. False:
  // answered.
  bool ApplyCors(http1::HttpExchangePtr& exchange) const;
  bool IsRefused(const http1::HttpHead& head, common::Category category) const;
  // What answers requests to a route: a row of the table in route.cc names one.
  friend struct RouteTable;
  using RouteHandler = void (ApiHandler::*)(http1::HttpExchangePtr exchange, const Route& route,
                                            const Dialect& dialect);
  static RouteHandler HandlerOf(RouteKind kind);
  void Dispatch(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // The same on a worker's thread: reading the body would keep the reactor too long.
  void DispatchAway(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleServerMetadata(http1::HttpExchangePtr exchange, const Route& route,
                            const Dialect& dialect);
  void HandleOpenApi(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleLiveness(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleReadiness(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleModelMetadata(http1::HttpExchangePtr exchange, const Route& route,
                           const Dialect& dialect);
  void HandleModelConfig(http1::HttpExchangePtr exchange, const Route& route,
                         const Dialect& dialect);
  void HandleRegions(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleRepositoryRequest(http1::HttpExchangePtr exchange, const Route& route,
                               const Dialect& dialect);
  void HandleStatistics(http1::HttpExchangePtr exchange, const Route& route,
                        const Dialect& dialect);
  void HandleLogging(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleTrace(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleInfer(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  void HandleGenerate(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // `what`, "live" or "ready", is the key of the body for clients that want one.
  void RespondHealth(http1::HttpExchangePtr exchange, std::string_view what, bool is_good);
  void AnswerReadiness(http1::HttpExchangePtr exchange, RouteKind kind, std::string_view model,
                       std::string_view version);
  // Null but for requests that are traced.
  std::shared_ptr<observe::Trace> StartTrace(const http1::HttpExchange& exchange,
                                             std::string_view model) const;
  // Answers a request whose JSON body is larger than allowed; false when it is not.
  bool RefuseOversize(http1::HttpExchangePtr& exchange) const;

  const ApiOptions options_;
  const std::optional<CorsPolicy> cors_;
  service::Service& service_;
  observe::Tracing* const tracing_;  // null: nobody is traced
  const common::RoundExecutors& rounds_;
  base::TaskPool& workers_;
  std::vector<std::unique_ptr<InferRequestReader>> readers_;  // one for each reactor
};

// GET /metrics, compressed for those who accept that, by a worker. Thread-safe; `pool`, on which
// the server runs, and `service` outlive it.
class MetricsHandler final : public JsonHandler {
 public:
  MetricsHandler(net::ReactorPool& pool, service::Service& service)
      : workers_(pool.workers()), service_(service) {}
  void Handle(http1::HttpExchangePtr exchange) override;

 private:
  base::TaskPool& workers_;
  service::Service& service_;
};

}  // namespace nereid::http
