// SPDX-License-Identifier: Apache-2.0
#include "http/api_handler.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/buffer_budget.h"
#include "base/log.h"
#include "common/admission.h"
#include "common/json_text.h"
#include "common/visible_models.h"
#include "config/print.h"
#include "core/model.h"
#include "http/header_length.h"
#include "http/infer_call.h"
#include "http/json_dom.h"
#include "http/log_settings.h"
#include "http/openai_routes.h"
#include "http/openapi.h"
#include "http/origin.h"
#include "http/region_routes.h"
#include "http/repository_control.h"
#include "http/start_trace.h"
#include "http/trace_settings.h"
#include "net/compression.h"
#include "service/model_json.h"

namespace nereid::http {
namespace {

using http1::HttpExchange;
using http1::HttpExchangePtr;

// A larger JSON head is received into the server's own memory, because JSON in lent memory has to
// be copied.
constexpr size_t kMaxJsonInLentMemory = size_t{64} << 10;
// Larger JSON is read on a worker thread, so that a reactor delays its other connections by a
// millisecond at most. So is all compressed JSON, which may expand a thousandfold.
constexpr size_t kMaxJsonOnReactor = size_t{64} << 10;
// Larger bodies of requests that will be refused because of who sends them are not waited for. A
// client keeps its connection after a smaller one.
constexpr size_t kMaxUnaskedBody = size_t{64} << 10;

void RespondJson(HttpExchangePtr exchange, int status, std::string_view json,
                 std::string_view headers = {}) {
  HttpExchange::Respond(
      std::move(exchange),
      {.status = status, .content_type = "application/json", .headers = headers, .text = json});
}

void RespondNotAllowed(HttpExchangePtr exchange, std::string_view allowed, const Dialect& dialect) {
  std::string headers = "Allow: ";
  headers += allowed;
  headers += "\r\n";
  RespondJson(std::move(exchange), 405, ErrorJson(405, "Method Not Allowed", dialect), headers);
}

bool IsAllowed(http1::HttpMethod method, std::string_view allowed) {
  if (method == http1::HttpMethod::kGet || method == http1::HttpMethod::kHead) {
    return allowed.starts_with("GET");
  }
  return method == http1::HttpMethod::kPost && allowed.ends_with("POST");
}

// Returns whether the body of a request is too large to wait for it in vain.
bool HasLargeBody(const http1::HttpHead& head) {
  return head.content_length().value_or(SIZE_MAX) > kMaxUnaskedBody;
}

// Makes the error for a body that was too large to keep: which limit it exceeds depends on its
// kind.
base::Status OversizeError(const HttpExchange& exchange, const Dialect& dialect, size_t limit) {
  const std::string size = std::to_string(exchange.body_size());
  const std::string end =
      std::to_string(limit) + " bytes. Use --http-max-input-size to increase the limit.";
  const auto field = HeaderLengthField(exchange.head(), dialect);
  if (!field) {
    return base::InvalidArgumentError("request JSON size of " + size +
                                      " bytes exceeds the maximum allowed input size of " + end);
  }
  const base::Result<int32_t> length = ParseInferenceHeaderLength(*field);
  if (!length.ok()) return length.status();
  if (*length == 0) {
    return base::InvalidArgumentError("Raw input has a byte_size (" + size +
                                      " bytes) that exceeds the maximum allowed value of " + end);
  }
  return base::InvalidArgumentError("request body of " + size +
                                    " bytes exceeds the maximum allowed input size of " + end);
}

// Returns whether the client says that it accepts JSON. Triton's replies to health requests have no
// body, and clients get one only if they ask for it; clients of the KServe protocol read it.
bool AcceptsJson(const http1::HttpHead& head) {
  const std::string_view accept = head.Header("Accept");
  constexpr std::string_view kJson = "application/json";
  return std::ranges::search(accept, kJson, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b;
         }).begin() != accept.end();
}

// Returns whether a request about health asks for reasons: ?verbose, alone or as true or 1.
bool WantsReasons(const http1::HttpHead& head) {
  std::string_view query = head.query();
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    if (part == "verbose" || part == "verbose=true" || part == "verbose=1") return true;
    query.remove_prefix(std::min(query.size(), part.size() + 1));
  }
  return false;
}

// Returns why the server is not ready. Who may not know all models learns only how many problems
// there are.
service::HealthChecks ReadinessFor(const HttpExchange& exchange, access::Gate* gate,
                                   const service::Service& service) {
  service::HealthChecks checks = service.CheckReadiness();
  if (gate == nullptr || gate->SeesAll(ExchangeSender(exchange), access::Scope::kMetadata)) {
    return checks;
  }
  for (service::HealthCheck& check : checks) {
    if (check.problems.empty()) continue;
    check.problems = {
        fmt::format("{}, which are told to who has the scope 'metadata' for all models",
                    check.problems.size())};
  }
  return checks;
}

// Returns whether reading the body of an inference takes long: its JSON is large, or it is
// compressed.
bool IsHeavy(const HttpExchange& exchange, net::Compression encoding, const Dialect& dialect) {
  const size_t size = exchange.body().size();
  if (encoding != net::Compression::kIdentity) return size > 0;
  return size > kMaxJsonOnReactor && HeaderSplit(exchange.head(), dialect) > kMaxJsonOnReactor;
}

}  // namespace

ApiHandler::ApiHandler(const ApiOptions& options, net::ReactorPool& pool, service::Service& service,
                       const common::RoundExecutors& rounds)
    : options_(options),
      cors_(options.cors.origins.empty() ? std::nullopt : std::optional<CorsPolicy>(options.cors)),
      service_(service),
      tracing_(service.tracing()),
      rounds_(rounds),
      workers_(pool.workers()) {
  for (size_t i = 0; i < pool.size(); ++i) {
    readers_.push_back(std::make_unique<InferRequestReader>(options.max_input_bytes));
  }
}

ApiHandler::~ApiHandler() = default;

http1::HttpBodyPlan ApiHandler::PlanBody(const http1::HttpHead& head, size_t max_bytes) {
  if (options_.gate != nullptr && HasLargeBody(head) && IsUnwanted(head)) [[unlikely]]
    return {.is_unwanted = true};
  return PlanInferBody(head, kTritonDialect, max_bytes);
}

bool ApiHandler::IsUnwanted(const http1::HttpHead& head) const {
  if (head.path().find('%') == std::string_view::npos) {
    return IsUnwanted(head, MatchRoute(head.path()));
  }
  const base::Result<std::string> path = DecodePath(head.path());
  return IsUnwanted(head, path.ok() ? MatchRoute(*path) : Route());
}

bool ApiHandler::IsUnwanted(const http1::HttpHead& head, const Route& route) const {
  if (options_.gate == nullptr || !HasLargeBody(head)) return false;
  return route.kind == RouteKind::kNone ||
         options_.gate->Foresee(HeadSender(head), RouteScope(route.kind), route.model) ==
             access::Gate::Outlook::kDenied;
}

access::Gate::Outlook ApiHandler::Foresee(const http1::HttpHead& head) const {
  using Outlook = access::Gate::Outlook;
  if (options_.gate == nullptr) return Outlook::kAdmitted;
  const Route route = MatchRoute(head.path());
  if (route.kind == RouteKind::kNone) return Outlook::kUnclear;
  return options_.gate->Foresee(HeadSender(head), RouteScope(route.kind), route.model);
}

// Tensors of a model whose backend lends memory for them are received there. Any request that is
// not a permitted inference is received as usual.
base::BufferRef ApiHandler::BodyBuffer(const http1::HttpHead& head, const http1::HttpBodyPlan& plan,
                                       size_t size) {
  if (plan.split == http1::HttpBodyPlan::kNoSplit || plan.split > kMaxJsonInLentMemory ||
      head.method() != http1::HttpMethod::kPost) {
    return {};
  }
  // Compressed bodies are received as usual.
  const Route route = MatchRoute(head.path());
  if (head.path().find('%') != std::string_view::npos || route.kind != RouteKind::kModelInfer ||
      !head.Header("Content-Encoding").empty() ||
      IsRefused(head, options_.restrictions, RouteCategory(route.kind)) ||
      Foresee(head) != access::Gate::Outlook::kAdmitted) {
    return {};
  }
  const base::Result<core::ModelHandle> model = service_.FindModel(route.model, route.version);
  // The request may still move to another version.
  if (!model.ok() || model->follows_rules()) return {};
  return (*model)->LendInputMemory(size);
}

bool ApiHandler::ApplyCors(HttpExchangePtr& exchange) const {
  const std::string_view lines = cors_->ReplyLines(exchange->head());
  if (lines.empty()) return true;
  exchange->set_reply_lines(lines);
  if (!CorsPolicy::IsPreflight(exchange->head())) return true;
  HttpExchange::Respond(std::move(exchange), {.status = 200, .headers = cors_->preflight_lines()});
  return false;
}

bool ApiHandler::AdmitOrigin(HttpExchangePtr& exchange) const {
  const http1::HttpHead& head = exchange->head();
  if (cors_ && !cors_->ReplyLines(head).empty()) return true;
  const std::string reason = RefuseOrigin(head, options_.gate != nullptr, options_.own_names);
  if (reason.empty()) return true;
  RespondJson(std::move(exchange), 403, common::JsonError(reason));
  return false;
}

bool ApiHandler::Admit(HttpExchangePtr& exchange, const Route& route) const {
  if (exchange->is_crowded() && RouteCategory(route.kind) != common::Category::kHealth)
      [[unlikely]] {
    RespondError(std::move(exchange), base::UnavailableError(std::string(common::kCrowdedText)), {},
                 RouteDialect(route.kind));
    return false;
  }
  const access::Scope scope = RouteScope(route.kind);
  if (options_.gate != nullptr || access::IsAudited(scope)) [[unlikely]] {
    const Dialect& dialect = RouteDialect(route.kind);
    if (!AdmitSender(exchange, options_.gate, scope, route.model, options_.control, dialect)) {
      return false;
    }
  }
  if (access::IsAudited(scope) && !AdmitOrigin(exchange)) [[unlikely]]
    return false;
  return AdmitCategory(exchange, options_.restrictions, RouteCategory(route.kind),
                       RouteDialect(route.kind));
}

void ApiHandler::Serve(HttpExchangePtr exchange, const Route& route, const Dialect& dialect) {
  if (Admit(exchange, route)) Dispatch(std::move(exchange), route, dialect);
}

// Every request enters here: the steps that all routes share.
void ApiHandler::Handle(HttpExchangePtr exchange) {
  NEREID_VLOG(1, "HTTP request: {} {}", exchange->head().method_text(), exchange->head().path());
  if (cors_ && !ApplyCors(exchange)) return;
  std::string_view path = exchange->head().path();
  std::string decoded;
  if (path.find('%') != std::string_view::npos) [[unlikely]] {
    base::Result<std::string> result = DecodePath(path);
    if (!result.ok()) return RespondError(std::move(exchange), result.status());
    path = decoded = std::move(*result);
  }
  const Route route = MatchRoute(path);
  if (route.kind == RouteKind::kNone) {
    if (options_.elsewhere != nullptr) return options_.elsewhere->Handle(std::move(exchange));
    RespondJson(std::move(exchange), 404, "{\"error\":\"Not Found\"}");
    return;
  }
  if (!Admit(exchange, route)) return;
  if (route.names_label && !MayHaveLabels(route.model)) [[unlikely]] {
    return RespondJson(std::move(exchange), 404, "{\"error\":\"Not Found\"}");
  }
  const std::string_view allowed = AllowedMethods(route.kind);
  if (!IsAllowed(exchange->head().method(), allowed)) {
    RespondNotAllowed(std::move(exchange), allowed, RouteDialect(route.kind));
    return;
  }
  exchange->TreatHeadAsGet();
  Dispatch(std::move(exchange), route, kTritonDialect);
}

bool ApiHandler::MayHaveLabels(std::string_view model) const {
  const base::Result<service::TrafficState> traffic = service_.ReadTraffic(model);
  if (traffic.ok() && !traffic->rules.labels.empty()) return true;
  // Those of a model on demand are known once it is loaded.
  return service_.LoadsOnDemand(model) && !service_.FindModel(model, {}).ok();
}

void ApiHandler::DispatchAway(HttpExchangePtr exchange, const Route& route,
                              const Dialect& dialect) {
  workers_.Post([this, exchange = std::move(exchange), kind = route.kind,
                 model = std::string(route.model), version = std::string(route.version),
                 region = std::string(route.region), names_repository = route.names_repository,
                 &dialect]() mutable {
    Dispatch(std::move(exchange), {kind, model, version, region, names_repository}, dialect);
  });
}

void ApiHandler::Dispatch(HttpExchangePtr exchange, const Route& route, const Dialect& dialect) {
  if (route.kind != RouteKind::kModelInfer && exchange->body().size() > kMaxJsonOnReactor &&
      net::Reactor::Current() != nullptr) {
    return DispatchAway(std::move(exchange), route, dialect);
  }
  (this->*HandlerOf(route.kind))(std::move(exchange), route, dialect);
}

bool ApiHandler::AwaitModel(HttpExchangePtr& exchange, const Route& route, const Dialect& dialect) {
  if (!service_.LoadsOnDemand(route.model)) return false;
  const std::string name(route.model);
  const std::string number(route.version);
  service_.AwaitModel(name, number,
                      [this, exchange = std::move(exchange), kind = route.kind, model = name,
                       version = number, &dialect](base::Result<core::ModelHandle> pinned) mutable {
                        if (!pinned.ok())
                          return RespondError(std::move(exchange), pinned.status(), {}, dialect);
                        // The pin keeps the model while the request looks for it again.
                        Dispatch(std::move(exchange),
                                 {.kind = kind, .model = model, .version = version}, dialect);
                      });
  return true;
}

void ApiHandler::HandleOpenAi(HttpExchangePtr exchange, const Route& route,
                              const Dialect& /*dialect*/) {
  if (options_.openai == nullptr) {
    return RespondJson(std::move(exchange), 404, OpenAiError(404, "Not Found"));
  }
  options_.openai->Serve(std::move(exchange), route);
}

void ApiHandler::HandleServerMetadata(HttpExchangePtr exchange, const Route& /*route*/,
                                      const Dialect& /*dialect*/) {
  RespondJson(std::move(exchange), 200, ToJson(service_.metadata()));
}

void ApiHandler::HandleOpenApi(HttpExchangePtr exchange, const Route& /*route*/,
                               const Dialect& /*dialect*/) {
  RespondJson(std::move(exchange), 200, OpenApiDocument());
}

void ApiHandler::HandleLiveness(HttpExchangePtr exchange, const Route& /*route*/,
                                const Dialect& /*dialect*/) {
  std::optional<service::HealthChecks> checks;
  if (WantsReasons(exchange->head())) checks = service_.CheckLiveness();
  RespondHealth(std::move(exchange), "live", service_.IsLive(), checks);
}

void ApiHandler::RespondHealth(HttpExchangePtr exchange, std::string_view what, bool is_good,
                               const std::optional<service::HealthChecks>& checks) {
  const int status = is_good ? 200 : 400;
  if (checks) return RespondJson(std::move(exchange), status, ToJson(what, is_good, *checks));
  if (!AcceptsJson(exchange->head())) {
    return HttpExchange::Respond(std::move(exchange),
                                 {.status = status, .content_type = "text/plain"});
  }
  RespondJson(std::move(exchange), status,
              "{\"" + std::string(what) + (is_good ? "\":true}" : "\":false}"));
}

void ApiHandler::HandleReadiness(HttpExchangePtr exchange, const Route& route,
                                 const Dialect& /*dialect*/) {
  if (!service_.ReadinessMayBlock()) [[likely]] {
    return RespondWithReadiness(std::move(exchange), route.kind, route.model, route.version);
  }
  service_.RunBlocking([this, exchange = std::move(exchange), kind = route.kind,
                        model = std::string(route.model),
                        version = std::string(route.version)]() mutable {
    RespondWithReadiness(std::move(exchange), kind, model, version);
  });
}

void ApiHandler::RespondWithReadiness(HttpExchangePtr exchange, RouteKind kind,
                                      std::string_view model, std::string_view version) {
  if (kind == RouteKind::kServerReady) {
    std::optional<service::HealthChecks> checks;
    if (WantsReasons(exchange->head())) checks = ReadinessFor(*exchange, options_.gate, service_);
    return RespondHealth(std::move(exchange), "ready", service_.IsReady(), checks);
  }
  RespondWithModelReadiness(std::move(exchange), model, version);
}

void ApiHandler::RespondWithModelReadiness(HttpExchangePtr exchange, std::string_view model,
                                           std::string_view version) {
  const base::Result<bool> ready = service_.IsModelReady(model, version);
  if (!ready.ok()) return RespondError(std::move(exchange), ready.status());
  if (WantsReasons(exchange->head())) {
    const base::Result<service::HealthChecks> checks = service_.CheckModel(model, version);
    if (!checks.ok()) return RespondError(std::move(exchange), checks.status());
    return RespondHealth(std::move(exchange), "ready", *ready, *checks);
  }
  if (!*ready) {
    return RespondError(std::move(exchange), base::InvalidArgumentError("Model version not ready"));
  }
  RespondHealth(std::move(exchange), "ready", true);
}

void ApiHandler::HandleModelMetadata(HttpExchangePtr exchange, const Route& route,
                                     const Dialect& dialect) {
  const auto metadata = service_.DescribeModel(route.model, route.version);
  if (!metadata.ok() && AwaitModel(exchange, route, dialect)) return;
  if (!metadata.ok()) return RespondError(std::move(exchange), metadata.status());
  RespondJson(std::move(exchange), 200, ToJson(*metadata));
}

void ApiHandler::HandleModelConfig(HttpExchangePtr exchange, const Route& route,
                                   const Dialect& dialect) {
  const auto config = service_.GetModelConfig(route.model, route.version);
  if (!config.ok() && AwaitModel(exchange, route, dialect)) return;
  if (!config.ok()) return RespondError(std::move(exchange), config.status());
  const base::Result<std::string> json = config::ToJson(**config);
  if (!json.ok()) return RespondError(std::move(exchange), json.status());
  RespondJson(std::move(exchange), 200, *json);
}

void ApiHandler::HandleRepositoryRequest(HttpExchangePtr exchange, const Route& route,
                                         const Dialect& /*dialect*/) {
  if (RefuseOversize(exchange)) return;
  HandleRepository(std::move(exchange), route, service_);
}

void ApiHandler::HandleRegions(HttpExchangePtr exchange, const Route& route,
                               const Dialect& /*dialect*/) {
  if (exchange->body_truncated() || exchange->body().size() > options_.max_input_bytes) {
    const base::Status error = OversizeError(*exchange, kTritonDialect, options_.max_input_bytes);
    return RespondError(std::move(exchange), error);
  }
  const base::Result<std::string> reply =
      HandleRegionRequest(service_.regions(), route, exchange->body());
  if (!reply.ok()) return RespondError(std::move(exchange), reply.status());
  RespondJson(std::move(exchange), 200, *reply);
}

void ApiHandler::HandleLogging(HttpExchangePtr exchange, const Route& /*route*/,
                               const Dialect& /*dialect*/) {
  if (exchange->head().method() == http1::HttpMethod::kPost) {
    if (RefuseOversize(exchange)) return;
    const base::Status status = UpdateLogSettings(exchange->body());
    if (!status.ok()) return RespondError(std::move(exchange), status);
  }
  RespondJson(std::move(exchange), 200, LogSettingsJson());
}

void ApiHandler::HandleTrace(HttpExchangePtr exchange, const Route& route,
                             const Dialect& /*dialect*/) {
  if (tracing_ == nullptr) {
    return RespondError(std::move(exchange),
                        base::UnavailableError("the server does not support tracing"));
  }
  if (!route.model.empty()) {
    const base::Result<bool> ready = service_.IsModelReady(route.model, "");
    if (!ready.ok() || !*ready) {
      return RespondError(
          std::move(exchange),
          base::InvalidArgumentError("Request for unknown model : " + std::string(route.model)));
    }
  }
  const std::string model(route.model);
  if (exchange->head().method() == http1::HttpMethod::kPost) {
    if ((model.empty() && !AdmitToAllModels(exchange)) || RefuseOversize(exchange)) return;
    const base::Status status = UpdateTraceSettings(*tracing_, model, exchange->body());
    if (!status.ok()) return RespondError(std::move(exchange), status);
  }
  RespondJson(std::move(exchange), 200, TraceSettingsJson(tracing_->Read(model)));
}

bool ApiHandler::RefuseOversize(HttpExchangePtr& exchange) const {
  if (!exchange->body_truncated() && exchange->body().size() <= options_.max_input_bytes) {
    return false;
  }
  const base::Status error = OversizeError(*exchange, kTritonDialect, options_.max_input_bytes);
  RespondError(std::move(exchange), error);
  return true;
}

void ApiHandler::HandleStatistics(HttpExchangePtr exchange, const Route& route,
                                  const Dialect& /*dialect*/) {
  common::VisibleModels visible(service_, SenderOf(*exchange));
  const auto list = visible.ReadStatistics(route.model, route.version);
  if (!list.ok()) return RespondError(std::move(exchange), list.status());
  RespondJson(std::move(exchange), 200, ToJson(*list));
}

void ApiHandler::HandleInfer(HttpExchangePtr exchange, const Route& route, const Dialect& dialect) {
  const auto refuse = [&](const base::Status& error, std::string_view headers = {}) {
    RespondError(std::move(exchange), error, headers, dialect);
  };
  base::Result<core::ModelHandle> model = service_.FindModel(route.model, route.version);
  if (!model.ok()) {
    if (AwaitModel(exchange, route, dialect)) return;
    return refuse(model.status());
  }
  if ((*model)->is_decoupled()) {
    return refuse(base::UnsupportedError(
        "HTTP end point doesn't support models with decoupled transaction policy"));
  }
  const http1::HttpHead& head = exchange->head();
  const base::Result<net::Compression> encoding =
      net::ParseContentEncoding(head.Header("Content-Encoding"));
  if (!encoding.ok()) return refuse(encoding.status(), "Accept-Encoding: gzip, deflate\r\n");
  if (exchange->body_truncated()) {
    return refuse(OversizeError(*exchange, dialect, options_.max_input_bytes));
  }
  core::RoundExecutor* const round = rounds_.Here();
  if (round != nullptr && IsHeavy(*exchange, *encoding, dialect)) {
    return DispatchAway(std::move(exchange), route, dialect);
  }
  InferSubmission submission;
  submission.body.bytes = exchange->body();
  submission.body_buffer = exchange->TakeBodyBuffer();
  if (*encoding != net::Compression::kIdentity) {
    const size_t split = HeaderSplit(head, dialect);
    base::Result<net::BufferView> body = net::Decompress(
        exchange->body(), {.max_bytes = options_.max_input_bytes,
                           .aligned_byte = split == http1::HttpBodyPlan::kNoSplit ? 0 : split,
                           .limit_hint = "Use --http-max-input-size to increase the limit."});
    if (!body.ok()) return refuse(body.status());
    if (options_.budgets != nullptr && body->buffer &&
        !base::ChargeBuffer(body->buffer, options_.budgets->request_bytes, body->data.size())) {
      return refuse(base::UnavailableError(
          "the server holds as many bytes of requests as --max-request-memory allows"));
    }
    submission.body.bytes = body->data;
    submission.body_buffer = std::move(body->buffer);
  }
  const base::Result<size_t> header_length =
      HeaderLength(head, dialect, submission.body.bytes.size());
  if (!header_length.ok()) return refuse(header_length.status());
  submission.body.header_length = *header_length;
  const auto accepted = head.FindHeader("Accept-Encoding");
  if (accepted && dialect.compresses_replies) {
    submission.reply_compression = net::NegotiateCompression(*accepted);
  }
  submission.model = std::move(*model);
  if (const base::Status refusal = common::Admit(
          options_.budgets, submission.model, submission.body.bytes.size(), submission.in_flight);
      !refusal.ok()) [[unlikely]] {
    return refuse(refusal);
  }
  submission.forwarder = options_.forwarder.get();
  submission.dialect = &dialect;
  submission.round = round;
  submission.trace = StartTrace(tracing_, *exchange, submission.model->name());
  submission.caller = CallerOf(*exchange);
  submission.may_use_regions = access::MayUseRegions(GrantOf(*exchange));
  const unsigned reactor = exchange->reactor().index();
  submission.exchange = std::move(exchange);
  if (round != nullptr) [[likely]] {
    return InferCall::Submit(std::move(submission), *readers_[reactor], service_);
  }
  InferRequestReader reader(options_.max_input_bytes);
  InferCall::Submit(std::move(submission), reader, service_);
}

void ApiHandler::HandleGenerate(HttpExchangePtr exchange, const Route& route,
                                const Dialect& dialect) {
  base::Result<core::ModelHandle> model = service_.FindModel(route.model, route.version);
  if (!model.ok() && AwaitModel(exchange, route, dialect)) return;
  if (!model.ok()) return RespondError(std::move(exchange), model.status());
  const base::Result<net::Compression> encoding =
      net::ParseContentEncoding(exchange->head().Header("Content-Encoding"));
  if (!encoding.ok() || *encoding != net::Compression::kIdentity) {
    return RespondError(
        std::move(exchange),
        base::InvalidArgumentError("Unsupported content-encoding, only 'identity' is supported."));
  }
  if (exchange->body_truncated()) {
    const base::Status error = OversizeError(*exchange, kTritonDialect, options_.max_input_bytes);
    return RespondError(std::move(exchange), error);
  }
  GenerateSubmission submission;
  if (const base::Status refusal =
          common::Admit(options_.budgets, *model, exchange->body().size(), submission.in_flight);
      !refusal.ok()) [[unlikely]] {
    return RespondError(std::move(exchange), refusal);
  }
  submission.model = std::move(*model);
  submission.is_stream = route.kind == RouteKind::kModelGenerateStream;
  submission.forwarder = options_.forwarder.get();
  submission.max_input_bytes = options_.max_input_bytes;
  submission.limits = options_.stream_limits;
  submission.round = rounds_.Here();
  submission.trace = StartTrace(tracing_, *exchange, submission.model->name());
  submission.caller = CallerOf(*exchange);
  submission.exchange = std::move(exchange);
  GenerateCall::Submit(std::move(submission), service_);
}

}  // namespace nereid::http
