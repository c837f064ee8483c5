// SPDX-License-Identifier: Apache-2.0
#include "cloud/vertex_ai.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "http/dialect.h"
#include "http/plain_reply.h"
#include "http/route.h"

namespace nereid::cloud {
namespace {

using http::RespondStatus;
using http::Route;
using http::RouteKind;
using http1::HttpExchange;
using http1::HttpExchangePtr;
using http1::HttpMethod;

constexpr http::Dialect kVertexDialect{
    .binary_mime = "application/vnd.vertex-ai-triton.binary+json;json-header-size=",
    .compresses_replies = false};

constexpr std::string_view kRedirectHeader = "X-Vertex-Ai-Triton-Redirect";

// Whether a redirection may reach a route.
enum class Reach { kOpen, kForbidden, kUnknown };

Reach ReachOf(RouteKind kind) {
  switch (kind) {
    case RouteKind::kServerMetadata:
    case RouteKind::kServerLive:
    case RouteKind::kServerReady:
    case RouteKind::kModelMetadata:
    case RouteKind::kModelReady:
    case RouteKind::kModelConfig:
    case RouteKind::kModelInfer:
    case RouteKind::kModelStatistics:
    case RouteKind::kAllStatistics:
    case RouteKind::kRepositoryIndex:
      return Reach::kOpen;
    case RouteKind::kSystemRegionStatus:
    case RouteKind::kCudaRegionStatus:
      return Reach::kOpen;
    case RouteKind::kSystemRegionRegister:
    case RouteKind::kSystemRegionUnregister:
    case RouteKind::kCudaRegionRegister:
    case RouteKind::kCudaRegionUnregister:
    case RouteKind::kRepositoryLoad:
    case RouteKind::kRepositoryUnload:
      return Reach::kForbidden;
    default:
      return Reach::kUnknown;
  }
}

}  // namespace

base::Result<std::unique_ptr<VertexAiHandler>> VertexAiHandler::Create(VertexAiOptions options,
                                                                       http::ApiHandler& api,
                                                                       service::Service& service) {
  // Texts: server/src/vertex_ai_server.cc, with its spelling of the first variable.
  if (options.predict_route.empty()) {
    return base::InvalidArgumentError("API_PREDICT_ROUTE is not defined for Vertex AI endpoint");
  }
  if (options.health_route.empty()) {
    return base::InvalidArgumentError("AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint");
  }
  const std::vector<service::IndexEntry> models = service.RepositoryIndex(true);
  if (options.default_model.empty()) {
    const auto is_another = [&](const service::IndexEntry& entry) {
      return entry.name != models.front().name;
    };
    if (models.empty() || std::ranges::any_of(models, is_another)) {
      return base::InvalidArgumentError(
          "Expect the model repository contains only a single model if default model is not "
          "specified");
    }
    options.default_model = models.front().name;
  } else if (std::ranges::find(models, options.default_model, &service::IndexEntry::name) ==
             models.end()) {
    return base::InvalidArgumentError("Expect the default model '" + options.default_model +
                                      "' is loaded");
  }
  return std::unique_ptr<VertexAiHandler>(new VertexAiHandler(std::move(options), api, service));
}

bool VertexAiHandler::IsUnwanted(const http1::HttpHead& head) const {
  if (head.path() != options_.predict_route) return api_.IsUnwanted(head, {});
  if (const auto redirect = head.FindHeader(kRedirectHeader)) {
    const std::string target = "/" + std::string(*redirect);
    return api_.IsUnwanted(head, http::MatchRoute(target));
  }
  return api_.IsUnwanted(head, {.kind = RouteKind::kModelInfer, .model = options_.default_model});
}

http1::HttpBodyPlan VertexAiHandler::PlanBody(const http1::HttpHead& head, size_t max_bytes) {
  if (IsUnwanted(head)) return {.is_unwanted = true};
  return http::PlanInferBody(head, kVertexDialect, max_bytes);
}

void VertexAiHandler::Handle(HttpExchangePtr exchange) {
  const http1::HttpHead& head = exchange->head();
  if (head.path() == options_.health_route) {
    if (head.method() != HttpMethod::kGet && head.method() != HttpMethod::kHead) {
      return RespondStatus(std::move(exchange), 405, "Allow: GET, HEAD\r\n");
    }
    exchange->TreatHeadAsGet();
    return api_.Serve(std::move(exchange), {.kind = RouteKind::kServerReady}, kVertexDialect);
  }
  if (head.path() != options_.predict_route) return RespondStatus(std::move(exchange), 400);
  if (head.method() != HttpMethod::kPost) {
    return RespondStatus(std::move(exchange), 405, "Allow: POST\r\n");
  }
  if (const auto redirect = head.FindHeader(kRedirectHeader)) {
    const std::string target = "/" + std::string(*redirect);
    return Redirect(std::move(exchange), target);
  }
  const Route route{.kind = RouteKind::kModelInfer, .model = options_.default_model};
  api_.Serve(std::move(exchange), route, kVertexDialect);
}

void VertexAiHandler::Redirect(HttpExchangePtr exchange, std::string_view target) {
  if (target == "/metrics") {
    if (!api_.AdmitMetrics(exchange)) return;
    const std::string text = service_.MetricsText();
    return HttpExchange::Respond(
        std::move(exchange),
        {.status = 200, .content_type = "text/plain; charset=utf-8", .text = text});
  }
  const Route route = http::MatchRoute(target);
  switch (ReachOf(route.kind)) {
    case Reach::kOpen:
      return api_.Serve(std::move(exchange), route, kVertexDialect);
    case Reach::kForbidden:
      return RespondStatus(std::move(exchange), 403);
    case Reach::kUnknown:
      break;
  }
  RespondStatus(std::move(exchange), 400);
}

}  // namespace nereid::cloud
