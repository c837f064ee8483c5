// SPDX-License-Identifier: Apache-2.0
#include "http/sagemaker.h"

#include <utility>

#include "http/plain_reply.h"

namespace nereid::http {

using net::HttpExchangePtr;
using net::HttpMethod;

base::Result<RouteKind> ParseSagemakerInference(std::string_view text) {
  if (text == "infer") return RouteKind::kModelInfer;
  if (text == "generate") return RouteKind::kModelGenerate;
  if (text == "generate_stream") return RouteKind::kModelGenerateStream;
  return base::InvalidArgumentError("Server has invalid inference type '" + std::string(text) +
                                    "'. Must be one of: infer, generate, generate_stream.");
}

size_t SagemakerHandler::BodySplit(const net::HttpHead& head) {
  return HeaderSplit(head, kSagemakerDialect);
}

size_t SagemakerHandler::MaxBodyBytes(const net::HttpHead& head, size_t configured) {
  return MaxInferBytes(head, kSagemakerDialect, configured);
}

void SagemakerHandler::Handle(HttpExchangePtr exchange) {
  const net::HttpHead& head = exchange->head();
  const std::string_view path = head.path();
  if (path == "/ping") {
    if (head.method() != HttpMethod::kGet && head.method() != HttpMethod::kHead) {
      return RespondStatus(std::move(exchange), 405, "Allow: GET, HEAD\r\n");
    }
    exchange->TreatHeadAsGet();
    return api_.Serve(std::move(exchange), {.kind = options_.ping}, kSagemakerDialect);
  }
  if (path == "/invocations") {
    if (head.method() != HttpMethod::kPost) {
      return RespondStatus(std::move(exchange), 405, "Allow: POST\r\n");
    }
    const Route route{.kind = options_.inference, .model = options_.default_model};
    return api_.Serve(std::move(exchange), route, kSagemakerDialect);
  }
  RespondStatus(std::move(exchange), 400);
}

}  // namespace nereid::http
