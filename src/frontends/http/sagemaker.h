// SPDX-License-Identifier: Apache-2.0
// The entry point that Amazon SageMaker expects of a model container: GET /ping and POST /invocations.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "http/api_handler.h"
#include "net/http_server.h"

namespace nereid::http {

struct SagemakerOptions {
  // Serves /invocations (SAGEMAKER_TRITON_DEFAULT_MODEL_NAME).
  std::string default_model = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";
  // What /invocations does (SAGEMAKER_TRITON_INFERENCE_TYPE).
  RouteKind inference = RouteKind::kModelInfer;
  // What /ping asks for (SAGEMAKER_TRITON_PING_MODE).
  RouteKind ping = RouteKind::kServerReady;
};

// "infer", "generate" or "generate_stream".
base::Result<RouteKind> ParseSagemakerInference(std::string_view text);

// Immutable. Outlives the server that it serves.
class SagemakerHandler final : public net::HttpHandler {
 public:
  // `api` outlives the handler.
  SagemakerHandler(SagemakerOptions options, ApiHandler& api)
      : options_(std::move(options)), api_(api) {}

  size_t BodySplit(const net::HttpHead& head) override;
  size_t MaxBodyBytes(const net::HttpHead& head, size_t configured) override;
  void Handle(net::HttpExchangePtr exchange) override;

 private:
  const SagemakerOptions options_;
  ApiHandler& api_;
};

}  // namespace nereid::http
