// SPDX-License-Identifier: Apache-2.0
// The entry point that Google's Vertex AI expects of a model container: one path for health and one
// for predictions, named by environment variables. A header of a prediction may redirect it to
// another route of the v2 API, among those that infer or only read.
#pragma once

#include <string>

#include "base/status.h"
#include "http/api_handler.h"
#include "http/json_handler.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::cloud {

// Vertex AI's environment variables.
struct VertexAiOptions {
  std::string predict_route;  // AIP_PREDICT_ROUTE
  std::string health_route;   // AIP_HEALTH_ROUTE
  // Serves predictions without a redirection. Empty: the only loaded model.
  std::string default_model;
};

// Immutable. Outlives the server that it serves.
class VertexAiHandler final : public http::JsonHandler {
 public:
  // Call this once the models are loaded; an error if there is no default model. `api` and
  // `service` outlive the handler.
  static base::Result<std::unique_ptr<VertexAiHandler>> Create(VertexAiOptions options,
                                                               http::ApiHandler& api,
                                                               service::Service& service);

  http1::HttpBodyPlan PlanBody(const http1::HttpHead& head, size_t max_bytes) override;
  void Handle(http1::HttpExchangePtr exchange) override;

 private:
  // Whether nobody should wait for the body of the request, whose sender may not send it.
  bool IsUnwanted(const http1::HttpHead& head) const;
  VertexAiHandler(VertexAiOptions options, http::ApiHandler& api, service::Service& service)
      : options_(std::move(options)), api_(api), service_(service) {}
  void Redirect(http1::HttpExchangePtr exchange, std::string_view target);

  const VertexAiOptions options_;
  http::ApiHandler& api_;
  service::Service& service_;
};

}  // namespace nereid::cloud
