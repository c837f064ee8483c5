// SPDX-License-Identifier: Apache-2.0
// The entry point that Amazon SageMaker expects of a model container: GET /ping and POST
// /invocations, and for containers of several models /models, /models/<name> and
// /models/<name>/invoke.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "cloud/sagemaker_models.h"
#include "http/api_handler.h"
#include "http/json_handler.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::cloud {

// SageMaker's environment variables.
struct SagemakerOptions {
  // The model that /invocations serves (SAGEMAKER_TRITON_DEFAULT_MODEL_NAME).
  std::string default_model = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";
  // What /invocations does (SAGEMAKER_TRITON_INFERENCE_TYPE).
  http::RouteKind inference = http::RouteKind::kModelInfer;
  // What /ping checks (SAGEMAKER_TRITON_PING_MODE).
  http::RouteKind ping = http::RouteKind::kServerReady;
  SagemakerModelOptions models;
};

// Accepts "infer", "generate" and "generate_stream".
base::Result<http::RouteKind> ParseSagemakerInference(std::string_view text);

// Thread-safe. Outlives its server and the work that it gave to the service.
class SagemakerHandler final : public http::JsonHandler {
 public:
  // `api` and `service` outlive the handler.
  SagemakerHandler(SagemakerOptions options, http::ApiHandler& api, service::Service& service)
      : options_(std::move(options)),
        api_(api),
        service_(service),
        models_(options_.models, service) {}

  http1::HttpBodyPlan PlanBody(const http1::HttpHead& head, size_t max_bytes) override;
  void Handle(http1::HttpExchangePtr exchange) override;

 private:
  // Whether nobody should wait for the body of the request, whose sender may not send it.
  bool IsUnwanted(const http1::HttpHead& head) const;
  // `rest` is what follows "/models".
  void HandleModels(http1::HttpExchangePtr exchange, std::string_view rest);
  void ListModels(http1::HttpExchangePtr exchange);
  void LoadModel(http1::HttpExchangePtr exchange);
  void GetModel(http1::HttpExchangePtr exchange, const std::string& name);
  void UnloadModel(http1::HttpExchangePtr exchange, std::string name);
  void InvokeModel(http1::HttpExchangePtr exchange, const std::string& name);

  const SagemakerOptions options_;
  http::ApiHandler& api_;
  service::Service& service_;
  SagemakerModels models_;
};

}  // namespace nereid::cloud
