// SPDX-License-Identifier: Apache-2.0
#include "openai/embedding_call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "common/admission.h"
#include "common/base64.h"
#include "common/failed_inference.h"
#include "common/json_text.h"
#include "core/model.h"
#include "http/infer_call.h"
#include "http/limit_headers.h"
#include "openai/completion.h"
#include "openai/fields.h"
#include "openai/inputs.h"
#include "tensor/shape.h"

namespace nereid::openai {

using core::ResponseOutput;
using http1::HttpExchange;
using tensor::DataType;

EmbeddingCall::EmbeddingCall(Submission submission, rapidjson::Document body,
                             std::vector<std::string_view> texts, std::string id,
                             service::Service& service)
    : service_(service),
      submission_(std::move(submission)),
      body_(std::move(body)),
      texts_(std::move(texts)),
      id_(std::move(id)),
      is_base64_(FindField(body_, "encoding_format") != nullptr &&
                 TextOf(*FindField(body_, "encoding_format")) == "base64"),
      batch_size_(static_cast<size_t>(std::max<int64_t>(1, submission_.model->max_batch_size()))) {}

void EmbeddingCall::Submit(Submission submission, rapidjson::Document body,
                           std::vector<std::string_view> texts, std::string id,
                           service::Service& service) {
  // Ends its own life when its last request does.
  EmbeddingCall* const self =
      std::unique_ptr<EmbeddingCall>(new EmbeddingCall(std::move(submission), std::move(body),
                                                       std::move(texts), std::move(id), service))
          .release();
  self->submission_.exchange->SetEvents(self);
  self->Run();
}

void EmbeddingCall::Run() {
  while (SubmitNext()) {
    // The thread that ends the request goes on, unless it did so before this one came here.
    if (phase_.exchange(kReturned) != kGone) return;
  }
  const std::unique_ptr<EmbeddingCall> self(this);
  Respond();
}

bool EmbeddingCall::SubmitNext() {
  if (!error_.ok() || next_text_ == texts_.size() || is_abandoned_.load()) return false;
  phase_.store(kSubmitting);
  batch_begin_ = next_text_;
  next_text_ += std::min(batch_size_, texts_.size() - next_text_);
  core::RequestPtr request = core::Request::Create(*this);
  request->model = submission_.model.Duplicate();
  request->round = submission_.rounds->Here();
  request->caller = submission_.caller;
  request->id = request->arena().Copy(id_);
  request->times.request_start_ns =
      batch_begin_ == 0 ? submission_.exchange->received_ns() : base::NowNs();
  error_ = ReadHeaders(submission_, *request);
  if (error_.ok()) {
    const auto batch = std::span(texts_).subspan(batch_begin_, next_text_ - batch_begin_);
    error_ = FillRequest(body_, submission_.contract,
                         {.name = submission_.contract.text_input, .texts = batch}, true, *request);
  }
  if (!error_.ok()) {
    common::LogFailedInference(request->id, error_.status());
    request.reset();  // calls OnRequestGone, which leaves the rest to this thread
    return true;
  }
  if (request->model.follows_rules()) [[unlikely]] {
    // All texts of one call go to one version. What is directed is the pin that counts as a request
    // in flight, and the call keeps that one.
    std::swap(request->model, submission_.model);
    http::DirectRequest(service_, submission_.exchange->head(), *request);
    submission_.model = std::exchange(request->model, request->model.Duplicate());
  }
  if (submission_.trace != nullptr) [[unlikely]] {
    submission_.trace->Describe(request->model->name(), request->model->version(), request->id);
    request->trace = std::move(submission_.trace);
  }
  // Until there is a response, for the case that none comes.
  error_ = base::InternalError("the model sent no response to the request");
  cancellation_.Open(*request);
  if (is_abandoned_.load()) [[unlikely]]
    if (const core::RequestRef mine = cancellation_.Take()) service_.Cancel(*mine);
  service_.Infer(std::move(request));
  return true;
}

void EmbeddingCall::Send(core::ResponsePtr response, bool is_final) {
  if (response != nullptr && !response->error().ok()) {
    common::LogFailedInference(response->request().id, response->error());
  }
  if (response != nullptr) quota_left_ = response->request().quota_left;
  if (response != nullptr && vector_count_ == batch_begin_) error_ = Collect(*response);
  // This or the end of `response` may destroy the request, so both come last.
  if (is_final) cancellation_.Close();
}

base::Status EmbeddingCall::Collect(const core::Response& response) {
  NEREID_RETURN_IF_ERROR(response.error());
  const std::string_view name = submission_.contract.embedding_output;
  const ResponseOutput* const output = FindOutput(response, name);
  const size_t texts = next_text_ - batch_begin_;
  const auto count = output == nullptr ? std::nullopt : tensor::ElementCount(output->shape.dims());
  const auto fails = [&](std::string_view what) {
    return base::InternalError(fmt::format("the model's output '{}' {}", name, what));
  };
  if (!count) return fails("is missing");
  if (output->type != DataType::kFp32 && output->type != DataType::kFp64) {
    return fails("must have the type FP32 or FP64");
  }
  const auto elements = static_cast<uint64_t>(*count);
  if (elements == 0 || elements % texts != 0 ||
      output->byte_size != elements * tensor::ElementSize(output->type)) {
    return fails(fmt::format("has the shape {}, which is no vector for each of {} texts",
                             tensor::ToString(output->shape), texts));
  }
  const size_t size = elements / texts;
  for (size_t i = 0; i < texts; ++i) {
    NEREID_RETURN_IF_ERROR(AppendVector(*output, i * size, size));
  }
  NEREID_ASSIGN_OR_RETURN(const std::optional<uint64_t> tokens,
                          ReadCount(response, config::kPromptTokensOutput));
  usage_.prompt_tokens = std::min<uint64_t>(usage_.prompt_tokens + tokens.value_or(0), INT64_MAX);
  return base::OkStatus();
}

base::Status EmbeddingCall::AppendVector(const ResponseOutput& output, size_t first, size_t count) {
  json_ += vector_count_ == 0 ? "" : ",";
  json_ += R"({"object":"embedding","index":)";
  common::AppendJsonInteger(json_, vector_count_++);
  json_ += ",\"embedding\":";
  std::string bytes;
  char separator = '[';
  for (size_t i = first; i < first + count; ++i) {
    double value = 0;
    if (output.type == DataType::kFp64) {
      std::memcpy(&value, output.data + i * sizeof(value), sizeof(value));
    } else {
      float narrow = 0;
      std::memcpy(&narrow, output.data + i * sizeof(narrow), sizeof(narrow));
      value = narrow;
    }
    if (!std::isfinite(value)) {
      return base::InternalError(
          fmt::format("the model's output '{}' has an element that is not "
                      "a finite number",
                      output.name));
    }
    if (is_base64_) {
      const auto narrow = static_cast<float>(value);
      bytes.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
      continue;
    }
    json_ += std::exchange(separator, ',');
    common::AppendJsonDouble(json_, value);
  }
  if (is_base64_) {
    json_ += '"';
    common::AppendBase64(json_, bytes);
    json_ += "\"}";
  } else {
    json_ += "]}";
  }
  return base::OkStatus();
}

void EmbeddingCall::Respond() {
  common::EndFlight(submission_.model, submission_.in_flight);
  std::string headers = fmt::format("x-request-id: {}\r\n", id_);
  http::AppendRateLimitLines(quota_left_, headers);
  if (!error_.ok()) return RespondError(std::move(submission_.exchange), error_, headers);
  std::string json = R"({"object":"list","data":[)";
  json += json_;
  json += "],\"model\":";
  common::AppendJsonString(json, ModelName(body_));
  json += ',';
  AppendUsage(usage_, true, json);
  json += '}';
  HttpExchange::Respond(
      std::move(submission_.exchange),
      {.status = 200, .content_type = "application/json", .headers = headers, .text = json});
}

void EmbeddingCall::OnRequestGone() {
  // While the submitter is at work, it goes on.
  if (phase_.exchange(kGone) == kReturned) Run();
}

void EmbeddingCall::OnDisconnect() {
  is_abandoned_.store(true);
  if (const core::RequestRef request = cancellation_.Take()) service_.Cancel(*request);
}

}  // namespace nereid::openai
