// SPDX-License-Identifier: Apache-2.0
// The routes of OpenAI's API (docs/openai.md): models, chats, completions and embeddings, served by
// models that promise so in their configuration (config/openai_contract.h). Requests become
// ordinary requests to these models.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/reactor_rounds.h"
#include "http/api_handler.h"
#include "http/openai_routes.h"
#include "http1/http_server.h"
#include "openai/api_error.h"
#include "openai/fields.h"
#include "openai/submission.h"
#include "service/service.h"

namespace nereid::openai {

// Thread-safe. Outlives the server and all requests.
class Handler final : public http::OpenAiRoutes {
 public:
  // Only those `options` count that are about limits, senders and headers. `service` and `rounds`
  // outlive the handler.
  Handler(const http::ApiOptions& options, service::Service& service,
          const common::RoundExecutors& rounds);

  void Serve(http1::HttpExchangePtr exchange, const http::Route& route) override;

 private:
  void ListModels(http1::HttpExchangePtr exchange);
  void DescribeModel(http1::HttpExchangePtr exchange, std::string_view name);
  // Calls `next` with the exchange when the model, which is loaded on demand, is loaded, or
  // responds with why it is not. Returns false, and leaves the exchange, if it is no such model.
  bool AwaitModel(http1::HttpExchangePtr& exchange, const std::string& name,
                  std::function<void(http1::HttpExchangePtr)> next);
  void ServeTask(http1::HttpExchangePtr exchange, Task task);
  // Reads the body and finds the model; an error if any of that is not as it should be. Empties the
  // exchange if it has replied.
  ApiError Prepare(http1::HttpExchangePtr& exchange, Task task, rapidjson::Document& body,
                   Submission& submission);
  void ServeEmbeddings(Submission submission, rapidjson::Document body);
  void ServeText(Submission submission, Task task, const JsonValue& body);
  void AppendModel(std::string_view name, std::string& json) const;
  // Returns an id that no other request has.
  std::string MakeId(std::string_view prefix);

  const http::ApiOptions options_;
  service::Service& service_;
  const common::RoundExecutors& rounds_;
  const int64_t started_s_;  // seconds since 1970
  const uint64_t nonce_;     // of this process
  std::atomic<uint64_t> next_id_{0};
};

}  // namespace nereid::openai
