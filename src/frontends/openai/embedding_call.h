// SPDX-License-Identifier: Apache-2.0
// One request for embeddings: one inference after another, each with as many texts as the model
// batches, until there is a vector for each text. Private to this module.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"
#include "http1/http_server.h"
#include "openai/api_error.h"
#include "openai/json_value.h"
#include "openai/piece.h"
#include "openai/submission.h"
#include "service/service.h"

namespace nereid::openai {

// Owns itself. Ends when the last request is gone, before which the exchange has been replied to.
// One thread at a time works on it: the one that submits a request hands it to the one that ends
// the request.
class EmbeddingCall final : public core::ResponseSink, private http1::HttpExchangeEvents {
 public:
  // Begins with the first texts, or replies at once with an error. `service` outlives every
  // request. `texts` are views of `body`.
  static void Submit(Submission submission, rapidjson::Document body,
                     std::vector<std::string_view> texts, std::string id,
                     service::Service& service);

  // core::ResponseSink
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;

 private:
  EmbeddingCall(Submission submission, rapidjson::Document body,
                std::vector<std::string_view> texts, std::string id, service::Service& service);

  void OnDisconnect() override;
  // Submits requests until one is not finished when Infer returns, or all are. May destroy this.
  void Run();
  // Returns whether a request was submitted; if not, the work is done.
  bool SubmitNext();
  base::Status Collect(const core::Response& response);
  base::Status AppendVector(const core::ResponseOutput& output, size_t first, size_t count);
  void Respond();

  service::Service& service_;
  Submission submission_;  // its exchange until it is replied to, its model until the end
  const rapidjson::Document body_;
  const std::vector<std::string_view> texts_;
  const std::string id_;
  const bool is_base64_;
  const size_t batch_size_;

  size_t next_text_ = 0;    // of those that are not submitted yet
  size_t batch_begin_ = 0;  // of those of the request in progress
  size_t vector_count_ = 0;
  std::string json_;
  Usage usage_;
  core::QuotaLeft quota_left_;  // as of the last response
  ApiError error_;

  // Whether the submitter has returned, and whether the request is gone: who comes second goes on.
  enum Phase : uint8_t { kSubmitting, kReturned, kGone };
  std::atomic<Phase> phase_{kSubmitting};
  std::atomic<bool> is_abandoned_{false};
  core::CancelHandle cancellation_;
};

}  // namespace nereid::openai
