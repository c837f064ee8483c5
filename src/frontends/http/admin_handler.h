// SPDX-License-Identifier: Apache-2.0
// What the admin listener serves: the whole API, and the metrics page.
#pragma once

#include <string_view>
#include <utility>

#include "http/api_handler.h"
#include "http/json_handler.h"
#include "http/metrics_handler.h"

namespace nereid::http {

// Thread-safe. Both handlers outlive it.
class AdminHandler final : public JsonHandler {
 public:
  AdminHandler(ApiHandler& api, MetricsHandler& metrics) : api_(api), metrics_(metrics) {}

  http1::HttpBodyPlan PlanBody(const http1::HttpHead& head, size_t max_bytes) override {
    return api_.PlanBody(head, max_bytes);
  }
  base::BufferRef BodyBuffer(const http1::HttpHead& head, const http1::HttpBodyPlan& plan,
                             size_t size) override {
    return api_.BodyBuffer(head, plan, size);
  }
  void Handle(http1::HttpExchangePtr exchange) override {
    if (exchange->head().path() == "/metrics") return metrics_.Handle(std::move(exchange));
    api_.Handle(std::move(exchange));
  }

 private:
  ApiHandler& api_;
  MetricsHandler& metrics_;
};

}  // namespace nereid::http
