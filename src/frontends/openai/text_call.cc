// SPDX-License-Identifier: Apache-2.0
#include "openai/text_call.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "common/admission.h"
#include "common/failed_inference.h"
#include "core/model.h"
#include "http/infer_call.h"
#include "http/limit_headers.h"

namespace nereid::openai {

using http1::HttpExchange;

TextCall::TextCall(Submission& submission, TextOptions options, service::Service& service)
    : service_(service),
      in_flight_(std::move(submission.in_flight)),
      contract_(submission.contract),
      limits_(submission.limits),
      options_(std::move(options)),
      filter_(options_.stops) {}

void TextCall::Submit(Submission submission, TextOptions options, const JsonValue& body,
                      const TextInput& text, service::Service& service) {
  // Ends its own life when the request does.
  TextCall* const self =
      std::unique_ptr<TextCall>(new TextCall(submission, std::move(options), service)).release();
  core::RequestPtr request = core::Request::Create(*self);
  const ApiError error = self->Prepare(submission, body, text, *request);
  if (error.ok() && request->model.follows_rules()) [[unlikely]]
    http::DirectRequest(service, submission.exchange->head(), *request);
  self->exchange_ = std::move(submission.exchange);
  if (!error.ok()) {
    common::LogFailedInference(request->id, error.status());
    common::EndFlight(request->model, self->in_flight_);
    RespondError(std::move(self->exchange_), error);
    return;  // destroys the request and with it `self`
  }
  if (submission.trace != nullptr) [[unlikely]] {
    submission.trace->Describe(request->model->name(), request->model->version(), request->id);
    request->trace = self->trace_ = std::move(submission.trace);
  }
  self->cancellation_.Open(*request);
  self->exchange_->SetEvents(self);
  // From here on another thread may respond; `self` may be gone when this returns.
  service.Infer(std::move(request));
}

ApiError TextCall::Prepare(Submission& submission, const JsonValue& body, const TextInput& text,
                           core::Request& request) {
  request.model = std::move(submission.model);
  request.round = submission.rounds->Here();
  request.caller = std::move(submission.caller);
  request.times.request_start_ns = submission.exchange->received_ns();
  request.id = request.arena().Copy(options_.head.id);
  NEREID_RETURN_IF_API_ERROR(ReadHeaders(submission, request));
  return FillRequest(body, contract_, text, false, request);
}

void TextCall::Send(core::ResponsePtr response, bool is_final) {
  if (trace_ != nullptr) [[unlikely]] {
    if (response != nullptr) trace_->ReportFrontend("INFER_RESPONSE_COMPLETE", base::NowNs());
    if (is_final) trace_->ReportFrontend("HTTP_SEND_START", base::NowNs());
  }
  if (response != nullptr && !response->error().ok()) {
    common::LogFailedInference(response->request().id, response->error());
  }
  // The end of this or of `response` may destroy the request and with it this object.
  core::RequestRef request;
  if (is_final) request = common::EndFlight(cancellation_, response.get(), in_flight_);
  if (response != nullptr) quota_left_ = response->request().quota_left;
  if (exchange_ != nullptr && response != nullptr) Take(*response, is_final);
  if (!is_final) return;
  if (exchange_ != nullptr) Finish();
  if (trace_ != nullptr) [[unlikely]]
    trace_->ReportFrontend("HTTP_SEND_END", base::NowNs());
}

void TextCall::Take(const core::Response& response, bool is_final) {
  base::Result<Piece> piece = response.error().ok()
                                  ? ReadPiece(response, contract_, options_.head.id, call_count_)
                                  : base::Result<Piece>(response.error());
  if (piece.ok()) {
    TakePiece(*std::move(piece), is_final);
  } else {
    Fail(piece.status());
  }
  // What else the model would say has nowhere to go.
  if (exchange_ == nullptr && !is_final) CancelRequest();
}

void TextCall::TakePiece(Piece piece, bool is_final) {
  filter_.Push(piece.text, text_);
  call_count_ += piece.tool_calls.size();
  if (!piece.finish_reason.empty()) finish_reason_ = CleanText(piece.finish_reason);
  if (piece.prompt_tokens) usage_.prompt_tokens = *piece.prompt_tokens;
  // Each summand is at most INT64_MAX, and so is the sum.
  usage_.completion_tokens =
      std::min<uint64_t>(usage_.completion_tokens + piece.completion_tokens, INT64_MAX);
  if (options_.is_stream && !is_final && !filter_.stopped()) {
    if (!text_.empty() || !piece.tool_calls.empty()) SendPart(piece.tool_calls);
    return;
  }
  for (std::string& call : piece.tool_calls) {
    tool_call_bytes_ += call.size();
    tool_calls_.push_back(std::move(call));
  }
  if (filter_.stopped()) {
    finish_reason_ = "stop";
    return Finish();
  }
  if (text_.size() + tool_call_bytes_ > limits_.most_waiting_bytes) {
    Fail(
        base::InternalError(fmt::format("the model's answer has more than {} bytes; the server "
                                        "joins no longer ones, but streams them",
                                        limits_.most_waiting_bytes)));
  }
}

void TextCall::SendPart(std::span<const std::string> calls) {
  if (exchange_->disconnected()) return text_.clear();
  event_.clear();
  AppendPartEvent(options_.head, {.text = text_, .tool_calls = calls, .finish_reason = {}},
                  {.is_first = !has_sent_part_,
                   .first_call = call_count_ - calls.size(),
                   .mentions_usage = options_.wants_usage},
                  event_);
  has_sent_part_ = true;
  text_.clear();
  Write();
}

void TextCall::Finish() {
  if (!filter_.stopped()) filter_.Finish(text_);
  if (finish_reason_.empty()) finish_reason_ = call_count_ > 0 ? "tool_calls" : "stop";
  event_.clear();
  if (!options_.is_stream) {
    AppendCompletion(options_.head,
                     {.text = text_, .tool_calls = tool_calls_, .finish_reason = finish_reason_},
                     usage_, event_);
    const std::string headers = Headers();
    return HttpExchange::Respond(
        std::move(exchange_),
        {.status = 200, .content_type = "application/json", .headers = headers, .text = event_});
  }
  if (!text_.empty() || !tool_calls_.empty() || !has_sent_part_) {
    AppendPartEvent(options_.head, {.text = text_, .tool_calls = tool_calls_, .finish_reason = {}},
                    {.is_first = !has_sent_part_,
                     .first_call = call_count_ - tool_calls_.size(),
                     .mentions_usage = options_.wants_usage},
                    event_);
  }
  AppendPartEvent(options_.head, {.text = {}, .tool_calls = {}, .finish_reason = finish_reason_},
                  {.mentions_usage = options_.wants_usage}, event_);
  if (options_.wants_usage) AppendUsageEvent(options_.head, usage_, event_);
  event_ += kDoneEvent;
  End();
}

void TextCall::Fail(const base::Status& error) {
  if (!has_started_) {
    const std::string headers = Headers();
    RespondError(std::move(exchange_), error, headers);
  } else {
    event_ = "data: " + ErrorJson(error) + "\n\n";
    event_ += kDoneEvent;
    End();
  }
}

void TextCall::Write() {
  const uint64_t rounds_seen = pacer_.rounds();
  bool has_room = false;
  if (has_started_) {
    has_room = exchange_->WriteChunk(event_);
  } else {
    has_started_ = true;
    const std::string headers = Headers();
    has_room = exchange_->StartStream(
        {.status = 200, .content_type = "text/event-stream; charset=utf-8", .headers = headers},
        event_);
  }
  if (has_room) return pacer_.NoteRoom();
  const char* const why = pacer_.MakeRoom(rounds_seen, event_.size(), limits_);
  if (why == nullptr) return;
  NEREID_VLOG(1, "a stream of events is given up: {}", why);
  exchange_.reset();  // truncated, which the client can distinguish from an end
}

void TextCall::End() {
  if (!has_started_) {
    const std::string headers = Headers();
    exchange_->StartStream(
        {.status = 200, .content_type = "text/event-stream; charset=utf-8", .headers = headers});
  }
  HttpExchange::EndStream(std::move(exchange_), event_);
}

// Dropping the reference may destroy this object, unless the caller holds the request or a response
// of it.
void TextCall::CancelRequest() {
  if (const core::RequestRef request = cancellation_.Take()) service_.Cancel(*request);
}

std::string TextCall::Headers() const {
  std::string lines = fmt::format("x-request-id: {}\r\n", options_.head.id);
  http::AppendRateLimitLines(quota_left_, lines);
  return lines;
}

void TextCall::OnRequestGone() {
  const std::unique_ptr<TextCall> self(this);
  if (exchange_ == nullptr) return;
  // The request was dropped without a final response.
  if (has_started_) return exchange_.reset();
  RespondError(std::move(exchange_),
               base::InternalError("the model sent no response to the request"));
}

void TextCall::OnDisconnect() {
  pacer_.NoteGone();
  CancelRequest();
}

void TextCall::OnStreamWritable() { pacer_.NoteWritable(); }

}  // namespace nereid::openai
