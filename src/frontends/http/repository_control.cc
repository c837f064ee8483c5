// SPDX-License-Identifier: Apache-2.0
// Texts: HandleRepositoryIndex and HandleRepositoryControl of server/src/http_server.cc of Triton.
#include "http/repository_control.h"

#include <string>
#include <utility>

#include "common/base64.h"
#include "common/visible_models.h"
#include "http/admission.h"
#include "http/infer_call.h"
#include "http/json_dom.h"
#include "http/traffic_change.h"
#include "service/model_json.h"

namespace nereid::http {
namespace {

using http1::HttpExchange;
using http1::HttpExchangePtr;

constexpr std::string_view kFilePrefix = "file:";

// Parses the body as JSON; an empty body has no members.
base::Status ReadBody(std::string_view body, rapidjson::Document& document) {
  return body.empty() ? base::OkStatus() : ParseJson(body, document);
}

base::Result<bool> ReadIndexOptions(std::string_view body) {
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ReadBody(body, document));
  const JsonValue* const ready = FindMember(document, "ready");
  if (ready == nullptr) return false;
  if (!ready->IsBool()) {
    return base::InvalidArgumentError("Invalid value for 'ready': expected a boolean");
  }
  return ready->GetBool();
}

base::Result<bool> ReadUnloadOptions(std::string_view body) {
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ReadBody(body, document));
  const JsonValue* const parameters = FindMember(document, "parameters");
  if (parameters == nullptr) return false;
  const JsonValue* const value = FindMember(*parameters, "unload_dependents");
  if (value == nullptr) return false;
  return JsonBool(*value, "Unable to parse 'unload_dependents'");
}

void RespondWithIndex(HttpExchangePtr exchange, service::Service& service) {
  const base::Result<bool> only_ready = ReadIndexOptions(exchange->body());
  if (!only_ready.ok()) return RespondError(std::move(exchange), only_ready.status());
  common::VisibleModels visible(service, SenderOf(*exchange));
  const std::string json = ToJson(visible.RepositoryIndex(*only_ready));
  HttpExchange::Respond(std::move(exchange),
                        {.status = 200, .content_type = "application/json", .text = json});
}

void RespondWithTraffic(HttpExchangePtr exchange, std::string_view model,
                        service::Service& service) {
  const base::Result<service::TrafficState> state = service.ReadTraffic(model);
  if (!state.ok()) return RespondError(std::move(exchange), state.status());
  const std::string json = ToJson(*state);
  HttpExchange::Respond(std::move(exchange),
                        {.status = 200, .content_type = "application/json", .text = json});
}

// A sender who may use some models only cannot send copies to the others.
base::Status CheckShadowIsVisible(const HttpExchange& exchange,
                                  const service::TrafficChange& change) {
  if (!change.shadow || !change.shadow->model || change.shadow->model->empty()) {
    return base::OkStatus();
  }
  const access::GrantRef grant = SenderOf(exchange);
  if (grant == nullptr || grant->models.Allows(*change.shadow->model)) return base::OkStatus();
  return base::NotFoundError("the shadow: Request for unknown model: '" + *change.shadow->model +
                             "' is not found");
}

base::Status Control(const HttpExchange& exchange, const Route& route, std::string_view model,
                     service::Service& service) {
  if (route.names_repository) {
    return base::UnsupportedError("'repository_name' specification is not supported");
  }
  if (route.kind == RouteKind::kModelTraffic) {
    if (exchange.head().method() == http1::HttpMethod::kGet) return base::OkStatus();
    NEREID_ASSIGN_OR_RETURN(const service::TrafficChange change,
                            ReadTrafficChange(exchange.body()));
    NEREID_RETURN_IF_ERROR(CheckShadowIsVisible(exchange, change));
    return service.ChangeTraffic(model, change);
  }
  if (route.kind == RouteKind::kRepositoryLoad) {
    NEREID_ASSIGN_OR_RETURN(const service::LoadOptions options, ReadLoadOptions(exchange.body()));
    return service.LoadModel(model, options);
  }
  NEREID_ASSIGN_OR_RETURN(const bool unload_dependents, ReadUnloadOptions(exchange.body()));
  return service.UnloadModel(model, unload_dependents);
}

}  // namespace

base::Result<service::LoadOptions> ReadLoadOptions(std::string_view body, size_t most) {
  service::LoadOptions options;
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ReadBody(body, document));
  const JsonValue* const parameters = FindMember(document, "parameters");
  if (parameters == nullptr) return options;
  if (!parameters->IsObject()) return base::InternalError("attempt to get members for non-object");
  for (const auto& member : parameters->GetObject()) {
    const std::string_view name(member.name.GetString(), member.name.GetStringLength());
    NEREID_ASSIGN_OR_RETURN(const std::string_view text, JsonText(member.value, {}));
    if (name == "config") {
      options.config = std::string(text);
    } else if (!name.starts_with(kFilePrefix)) {
      return base::InternalError("unexpected error on creating Triton parameter");
    } else if (text.size() > most) {
      return base::InvalidArgumentError("'" + std::string(name) +
                                        "' exceeds the maximum allowed data size limit INT_MAX");
    } else {
      options.files.push_back(
          {std::string(name.substr(kFilePrefix.size())), common::DecodeBase64(text)});
    }
  }
  return options;
}

void HandleRepository(HttpExchangePtr exchange, const Route& route, service::Service& service) {
  service.RunBlocking([exchange = std::move(exchange), route, model = std::string(route.model),
                       &service]() mutable {
    if (route.kind == RouteKind::kRepositoryIndex)
      return RespondWithIndex(std::move(exchange), service);
    const base::Status status = Control(*exchange, route, model, service);
    if (!status.ok()) return RespondError(std::move(exchange), status);
    if (route.kind == RouteKind::kModelTraffic) {
      return RespondWithTraffic(std::move(exchange), model, service);
    }
    HttpExchange::Respond(std::move(exchange),
                          {.status = 200, .content_type = "application/json", .text = {}});
  });
}

}  // namespace nereid::http
