// SPDX-License-Identifier: Apache-2.0
// The REST API on http1::HttpServer: every route of http/route.h, that is health, metadata,
// configuration, infer and generate, statistics, the repository, shared memory, trace and log
// settings, and the entrance to the routes of OpenAI's API.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "access/gate.h"
#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "common/restrictions.h"
#include "core/budgets.h"
#include "http/admission.h"
#include "http/cors.h"
#include "http/dialect.h"
#include "http/generate_call.h"
#include "http/infer_request.h"
#include "http/json_handler.h"
#include "http/openai_routes.h"
#include "http/route.h"
#include "http1/http_server.h"
#include "net/reactor.h"
#include "service/service.h"

namespace nereid::http {

// The flags --http-… that the API needs.
struct ApiOptions {
  // The limit for JSON heads, JSON tensors, raw requests and decompressed bodies
  // (--http-max-input-size).
  size_t max_input_bytes = size_t{64} << 20;
  // The routes that need a header.
  common::Restrictions restrictions;
  // Knows who may do what; null: everybody may do everything. Outlives the handler.
  access::Gate* gate = nullptr;
  // Whether another listener serves the control APIs.
  ControlPlace control;
  // Which headers become parameters of requests; null: none.
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  CorsOptions cors;
  std::vector<std::string> own_names = {};  // OwnNames
  StreamLimits stream_limits;
  // The budgets of which requests take their part; null: no limits. Outlives all requests.
  core::Budgets* budgets = nullptr;
  // Serves the routes of OpenAI's API; null: there are none. Outlives the handler.
  OpenAiRoutes* openai = nullptr;
  // Serves the paths that are not of the API; null: they are 404. Outlives the handler.
  http1::HttpHandler* elsewhere = nullptr;
};

// Thread-safe. Outlives its server and all requests.
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

  // Handles a request for entry points with paths of their own, as Handle does once it knows the
  // route. The same restrictions apply; the caller checks the method. The texts of `route` must
  // stay valid until this returns.
  void Serve(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // Returns whether a request to that route may proceed; if not, it has been replied to.
  bool Admit(http1::HttpExchangePtr& exchange, const Route& route) const;
  // Like Admit, for the metrics page, and for a model that is named by the body.
  bool AdmitMetrics(http1::HttpExchangePtr& exchange) const {
    return AdmitSender(exchange, options_.gate, access::Scope::kMetrics, {}, options_.control);
  }
  bool AdmitModel(http1::HttpExchangePtr& exchange, std::string_view model) const {
    return http::AdmitModel(exchange, options_.gate, model);
  }
  // Returns whether the body of such a request is large and Admit will refuse it, or the route is
  // none, so that nobody should wait for it.
  bool IsUnwanted(const http1::HttpHead& head, const Route& route) const;

 private:
  // Replies to a preflight, and adds the header lines that browsers need to every reply. Returns
  // false if it has replied.
  bool ApplyCors(http1::HttpExchangePtr& exchange) const;
  // Refuses what a page of another site asks for. Returns false if it has replied.
  bool AdmitOrigin(http1::HttpExchangePtr& exchange) const;
  // Whether versions of the model have labels; those of others are no routes, as in Triton.
  bool MayHaveLabels(std::string_view model) const;
  // The same for the route of the head's path.
  bool IsUnwanted(const http1::HttpHead& head) const;
  // What Admit will say of a sender, as far as the head tells.
  access::Gate::Outlook Foresee(const http1::HttpHead& head) const;
  // The table in route.cc names the member function for each route.
  friend struct RouteTable;
  using RouteHandler = void (ApiHandler::*)(http1::HttpExchangePtr exchange, const Route& route,
                                            const Dialect& dialect);
  static RouteHandler HandlerOf(RouteKind kind);
  void Dispatch(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // Calls Dispatch on a worker thread, because reading the body would occupy the reactor too long.
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
  void HandleOpenAi(http1::HttpExchangePtr exchange, const Route& route, const Dialect& dialect);
  // `what`, "live" or "ready", is the key in the body for clients that want one. `checks` are those
  // that the client has asked for (?verbose); none if it has not.
  void RespondHealth(http1::HttpExchangePtr exchange, std::string_view what, bool is_good,
                     const std::optional<service::HealthChecks>& checks = std::nullopt);
  void RespondWithReadiness(http1::HttpExchangePtr exchange, RouteKind kind, std::string_view model,
                            std::string_view version);
  void RespondWithModelReadiness(http1::HttpExchangePtr exchange, std::string_view model,
                                 std::string_view version);
  // Waits for a model that is loaded on demand, and then dispatches the request again; `exchange`
  // is then gone. Returns false if it is no such model.
  bool AwaitModel(http1::HttpExchangePtr& exchange, const Route& route, const Dialect& dialect);
  // Replies to a request whose JSON body is larger than allowed; returns false if it is not.
  bool RefuseOversize(http1::HttpExchangePtr& exchange) const;

  const ApiOptions options_;
  const std::optional<CorsPolicy> cors_;
  service::Service& service_;
  observe::Tracing* const tracing_;  // null: no traces
  const common::RoundExecutors& rounds_;
  base::TaskPool& workers_;
  std::vector<std::unique_ptr<InferRequestReader>> readers_;  // one for each reactor
};

}  // namespace nereid::http
