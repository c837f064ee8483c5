// SPDX-License-Identifier: Apache-2.0
#include "cloud/sagemaker.h"

#include <utility>

#include "base/log.h"
#include "cloud/sagemaker_status.h"
#include "common/json_text.h"
#include "http/dialect.h"
#include "http/infer_call.h"
#include "http/json_dom.h"
#include "http/plain_reply.h"

namespace nereid::cloud {

namespace {

using http::JsonValue;
using http::RespondStatus;
using http::Route;
using http::RouteKind;
using http1::HttpExchange;
using http1::HttpExchangePtr;
using http1::HttpMethod;

constexpr http::Dialect kSageMakerDialect{
    .binary_mime = "application/vnd.sagemaker-triton.binary+json;json-header-size=",
    .has_mime_in_replies = true,
    .compresses_replies = false};
// The dialect for models that SageMaker loads and invokes by name.
constexpr http::Dialect kSageMakerModelDialect{.binary_mime = kSageMakerDialect.binary_mime,
                                               .has_mime_in_replies = true,
                                               .compresses_replies = false,
                                               .error_status = &SagemakerErrorStatus};

constexpr std::string_view kTargetHeader = "X-Amzn-SageMaker-Target-Model";

void RespondJson(HttpExchangePtr exchange, std::string_view json) {
  HttpExchange::Respond(std::move(exchange),
                        {.status = 200, .content_type = "application/json", .text = json});
}

// 409 if the model is there already, else the status that the platform expects for the error.
void RespondResult(HttpExchangePtr exchange, const base::Status& status) {
  if (status.ok()) {
    return HttpExchange::Respond(std::move(exchange),
                                 {.status = 200, .content_type = "application/json"});
  }
  if (status.code() != base::StatusCode::kAlreadyExists) {
    return http::RespondError(std::move(exchange), status, {}, kSageMakerModelDialect);
  }
  const std::string body = common::JsonError(status.message());
  HttpExchange::Respond(std::move(exchange),
                        {.status = 409, .content_type = "application/json", .text = body});
}

void AppendModel(const SagemakerModels::Model& model, std::string& json) {
  json += "{\"modelName\":";
  common::AppendJsonString(json, model.name);
  json += ",\"modelUrl\":";
  common::AppendJsonString(json, model.url);
  json += '}';
}

// Returns a text member of the body; empty if there is none.
base::Result<std::string> TextOf(const JsonValue& document, const char* name) {
  const JsonValue* const member = http::FindMember(document, name);
  if (member == nullptr) return std::string();
  NEREID_ASSIGN_OR_RETURN(const std::string_view text, http::JsonText(*member, ""));
  return std::string(text);
}

// The contents of a load request. `target` is the model's name in the server.
struct LoadRequest {
  std::string name;
  std::string url;
  std::string target;
};

base::Result<LoadRequest> ReadLoadRequest(const HttpExchange& exchange) {
  if (exchange.body_truncated()) return base::InvalidArgumentError("the request is too large");
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(http::ParseJson(exchange.body(), document));
  LoadRequest request;
  NEREID_ASSIGN_OR_RETURN(request.name, TextOf(document, "model_name"));
  NEREID_ASSIGN_OR_RETURN(request.url, TextOf(document, "url"));
  const http1::HttpHead& head = exchange.head();
  request.target = std::string(head.FindHeader(kTargetHeader).value_or(request.name));
  return request;
}

}  // namespace

base::Result<RouteKind> ParseSagemakerInference(std::string_view text) {
  if (text == "infer") return RouteKind::kModelInfer;
  if (text == "generate") return RouteKind::kModelGenerate;
  if (text == "generate_stream") return RouteKind::kModelGenerateStream;
  return base::InvalidArgumentError("Server has invalid inference type '" + std::string(text) +
                                    "'. Must be one of: infer, generate, generate_stream.");
}

bool SagemakerHandler::IsUnwanted(const http1::HttpHead& head) const {
  const std::string_view path = head.path();
  Route route;
  if (path == "/invocations") {
    route = {.kind = options_.inference, .model = options_.default_model};
  } else if (path.starts_with("/models/") && path.ends_with("/invoke")) {
    route.kind = RouteKind::kModelInfer;
  } else if (path == "/models" || path == "/models/") {
    route.kind = RouteKind::kRepositoryLoad;
  }
  return api_.IsUnwanted(head, route);
}

http1::HttpBodyPlan SagemakerHandler::PlanBody(const http1::HttpHead& head, size_t max_bytes) {
  if (IsUnwanted(head)) return {.is_unwanted = true};
  return http::PlanInferBody(head, kSageMakerDialect, max_bytes);
}

void SagemakerHandler::Handle(HttpExchangePtr exchange) {
  const http1::HttpHead& head = exchange->head();
  const std::string_view path = head.path();
  if (path == "/ping") {
    if (head.method() != HttpMethod::kGet && head.method() != HttpMethod::kHead) {
      return RespondStatus(std::move(exchange), 405, "Allow: GET, HEAD\r\n");
    }
    exchange->TreatHeadAsGet();
    return api_.Serve(std::move(exchange), {.kind = options_.ping}, kSageMakerDialect);
  }
  if (path == "/invocations") {
    if (head.method() != HttpMethod::kPost) {
      return RespondStatus(std::move(exchange), 405, "Allow: POST\r\n");
    }
    const Route route{.kind = options_.inference, .model = options_.default_model};
    return api_.Serve(std::move(exchange), route, kSageMakerDialect);
  }
  if (path == "/models" || path.starts_with("/models/")) {
    return HandleModels(std::move(exchange), path.substr(std::string_view("/models").size()));
  }
  RespondStatus(std::move(exchange), 400);
}

void SagemakerHandler::HandleModels(HttpExchangePtr exchange, std::string_view rest) {
  const HttpMethod method = exchange->head().method();
  if (rest.starts_with('/')) rest.remove_prefix(1);
  const std::string name(rest.substr(0, rest.find('/')));
  const std::string_view action = rest.substr(name.size());
  if (action == "/invoke" && !name.empty() && method == HttpMethod::kPost) {
    return InvokeModel(std::move(exchange), name);
  }
  if (!action.empty()) return RespondStatus(std::move(exchange), 400);
  if (method == HttpMethod::kGet) {
    if (!api_.Admit(exchange, {.kind = RouteKind::kRepositoryIndex})) return;
    return name.empty() ? ListModels(std::move(exchange)) : GetModel(std::move(exchange), name);
  }
  if (method == HttpMethod::kPost && name.empty()) return LoadModel(std::move(exchange));
  if (method == HttpMethod::kDelete && !name.empty()) {
    return UnloadModel(std::move(exchange), name);
  }
  RespondStatus(std::move(exchange), 400);
}

void SagemakerHandler::ListModels(HttpExchangePtr exchange) {
  std::string json = "{\"models\":[";
  const access::GrantRef sender = http::SenderOf(*exchange);
  for (const SagemakerModels::Model& model : models_.List()) {
    if (sender != nullptr && !sender->models.Allows(model.target)) continue;
    if (json.back() == '}') json += ',';
    AppendModel(model, json);
  }
  RespondJson(std::move(exchange), json + "]}");
}

void SagemakerHandler::GetModel(HttpExchangePtr exchange, const std::string& name) {
  const std::optional<SagemakerModels::Model> model = models_.Find(name);
  if (!model) return RespondStatus(std::move(exchange), 404);
  if (!api_.AdmitModel(exchange, model->target)) return;
  std::string json;
  AppendModel(*model, json);
  RespondJson(std::move(exchange), json);
}

void SagemakerHandler::LoadModel(HttpExchangePtr exchange) {
  if (!api_.Admit(exchange, {.kind = RouteKind::kRepositoryLoad})) return;
  base::Result<LoadRequest> request = ReadLoadRequest(*exchange);
  if (!request.ok()) return RespondResult(std::move(exchange), request.status());
  if (!api_.AdmitModel(exchange, request->target)) return;
  NEREID_LOG(kInfo, "Loading SageMaker TargetModel: {}", request->target);
  service_.RunBlocking(
      [this, exchange = std::move(exchange), load = *std::move(request)]() mutable {
        RespondResult(std::move(exchange), models_.Load(load.name, load.url, load.target));
      });
}

void SagemakerHandler::UnloadModel(HttpExchangePtr exchange, std::string name) {
  if (!api_.Admit(exchange, {.kind = RouteKind::kRepositoryUnload})) return;
  const std::optional<SagemakerModels::Model> model = models_.Find(name);
  if (model && !api_.AdmitModel(exchange, model->target)) return;
  service_.RunBlocking([this, exchange = std::move(exchange), name = std::move(name)]() mutable {
    const std::optional<base::Status> status = models_.Unload(name);
    if (!status) return RespondStatus(std::move(exchange), 404);
    NEREID_LOG(kInfo, "Unloaded the SageMaker model {}", name);
    RespondResult(std::move(exchange), *status);
  });
}

void SagemakerHandler::InvokeModel(HttpExchangePtr exchange, const std::string& name) {
  const Route unnamed{.kind = RouteKind::kModelInfer};
  if (!api_.Admit(exchange, unnamed)) return;  // must not reveal whether there is such a model
  const std::optional<SagemakerModels::Model> model = models_.Find(name);
  if (!model) return RespondStatus(std::move(exchange), 404);
  NEREID_VLOG(1, "Invoking SageMaker TargetModel: {}", model->target);
  const Route route{.kind = RouteKind::kModelInfer, .model = model->target};
  api_.Serve(std::move(exchange), route, kSageMakerModelDialect);
}

}  // namespace nereid::cloud
