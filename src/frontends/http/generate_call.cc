// SPDX-License-Identifier: Apache-2.0
#include "http/generate_call.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "common/admission.h"
#include "common/failed_inference.h"
#include "common/json_text.h"
#include "common/load_report.h"
#include "common/status_codes.h"
#include "core/model.h"
#include "http/generate_request.h"
#include "http/generate_response.h"
#include "http/infer_call.h"
#include "http/limit_headers.h"
#include "http/load_header.h"
#include "net/reactor.h"

namespace nereid::http {
namespace {

using Pool = base::ObjectPool<GenerateCall>;

// Longer texts are not kept for the next request.
constexpr size_t kKeptBytes = size_t{64} << 10;

constexpr char kNotOneResponse[] =
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses";

// The call that this thread is submitting.
thread_local const GenerateCall* submitting = nullptr;

// Returns whether the request never reached an instance, and this is said before its submission is
// over.
bool WasRefused(const core::Response& response, const GenerateCall& call) {
  return !response.error().ok() && response.request().times.batch_start_ns == 0 &&
         submitting == &call;
}

}  // namespace

void GenerateCall::Submit(GenerateSubmission submission, service::Service& service) {
  GenerateCall* const self = Pool::Take();
  self->service_ = &service;
  self->in_flight_ = std::move(submission.in_flight);
  self->limits_ = submission.limits;
  self->is_stream_ = submission.is_stream;
  core::RequestPtr request = core::Request::Create(*self);
  request->model = std::move(submission.model);
  request->round = submission.round;
  request->caller = std::move(submission.caller);
  request->times.request_start_ns = submission.exchange->received_ns();
  base::Status status =
      ReadGenerateRequest(submission.exchange->body(), submission.max_input_bytes, *request);
  if (status.ok()) status = ReadRequestTimeout(*submission.exchange, *request);
  if (submission.forwarder != nullptr && status.ok()) {
    status = ForwardHeaders(*submission.forwarder, submission.exchange->head(), *request);
  }
  if (status.ok() && request->model.follows_rules()) [[unlikely]]
    DirectRequest(service, submission.exchange->head(), *request);
  self->exchange_ = std::move(submission.exchange);
  if (status.ok() && submission.trace != nullptr) [[unlikely]] {
    submission.trace->Describe(request->model->name(), request->model->version(), request->id);
    request->trace = self->trace_ = std::move(submission.trace);
  }
  if (!status.ok()) {
    common::LogFailedInference(request->id, status);
    common::EndFlight(request->model, self->in_flight_);
    RespondError(std::move(self->exchange_), status);
    return;  // destroys the request and with it `self`
  }
  self->cancellation_.Open(*request);
  self->exchange_->SetEvents(self);
  // From here on another thread may respond; `self` may be gone when this returns.
  const GenerateCall* const outer = std::exchange(submitting, self);
  service.Infer(std::move(request));
  submitting = outer;
}

void GenerateCall::Send(core::ResponsePtr response, bool is_final) {
  if (response != nullptr) ++response_count_;
  if (trace_ != nullptr) [[unlikely]] {
    if (response != nullptr) trace_->ReportFrontend("INFER_RESPONSE_COMPLETE", base::NowNs());
    if (is_final) trace_->ReportFrontend("HTTP_SEND_START", base::NowNs());
  }
  // The end of this or of `response` may destroy the request and with it this object.
  core::RequestRef request;
  if (is_final) request = common::EndFlight(cancellation_, response.get(), in_flight_);
  Pass(response.get(), is_final);
  if (is_final && trace_ != nullptr) [[unlikely]]
    trace_->ReportFrontend("HTTP_SEND_END", base::NowNs());
}

void GenerateCall::Pass(const core::Response* response, bool is_final) {
  if (response != nullptr && !response->error().ok()) {
    common::LogFailedInference(response->request().id, response->error());
  }
  if (exchange_ == nullptr) return;
  if (response != nullptr && response_count_ == 1) quota_left_ = response->request().quota_left;
  if (!is_stream_) {
    if (response != nullptr) Collect(*response);
    if (is_final) SendReply();
  } else if (response != nullptr && response_count_ == 1 && is_final &&
             WasRefused(*response, *this)) {
    const std::string headers = Headers();
    RespondError(std::move(exchange_), response->error(), headers);
  } else {
    if (response != nullptr) SendEvent(*response, is_final);
    if (is_final && exchange_ != nullptr) {
      if (!has_started_) StartStream(base::OkStatus(), {});
      http1::HttpExchange::EndStream(std::move(exchange_));
    }
  }
}

// Stores the only response that a reply of generate may have.
void GenerateCall::Collect(const core::Response& response) {
  if (response_count_ > 1) {
    // Further responses change nothing.
    if (response_count_ == 2) CancelRequest();
    return;
  }
  error_ = response.error();
  if (error_.ok()) error_ = AppendGenerateResponse(response, text_);
}

void GenerateCall::SendReply() {
  if (response_count_ != 1) error_ = base::InternalError(kNotOneResponse);
  const std::string headers = Headers();
  if (!error_.ok()) return RespondError(std::move(exchange_), error_, headers);
  http1::HttpExchange::Respond(
      std::move(exchange_),
      {.status = 200, .content_type = "application/json", .headers = headers, .text = text_});
}

void GenerateCall::SendEvent(const core::Response& response, bool is_final) {
  if (exchange_->disconnected()) return;
  base::Status error = response.error();
  text_ = "data: ";
  if (error.ok()) error = AppendGenerateResponse(response, text_);
  if (!error.ok()) {
    text_ = "data: ";
    text_ += common::JsonError(error.message());
  }
  text_ += "\n\n";
  if (has_started_ && is_final) {
    return http1::HttpExchange::EndStream(std::move(exchange_), text_);
  }
  const uint64_t rounds_seen = pacer_.rounds();
  const bool has_room = has_started_ ? exchange_->WriteChunk(text_) : StartStream(error, text_);
  if (has_room) {
    pacer_.NoteRoom();
  } else if (!is_final) {
    const char* const why = pacer_.MakeRoom(rounds_seen, text_.size(), limits_);
    if (why != nullptr) GiveUp(why);
  }
}

bool GenerateCall::StartStream(const base::Status& error, std::string_view event) {
  has_started_ = true;
  const int status = error.ok() ? 200 : common::HttpStatus(error.code());
  std::string headers = Headers();
  if (!error.ok()) AppendRetryAfterLine(status, error, headers);
  return exchange_->StartStream(
      {.status = status, .content_type = "text/event-stream; charset=utf-8", .headers = headers},
      event);
}

void GenerateCall::GiveUp(const char* why) {
  NEREID_VLOG(1, "a generate stream is given up: {}", why);
  exchange_.reset();  // truncated, which the client can distinguish from an end
  CancelRequest();
}

// Dropping the reference may destroy this object, unless the caller holds the request or a response
// of it.
void GenerateCall::CancelRequest() {
  if (const core::RequestRef request = cancellation_.Take()) service_->Cancel(*request);
}

std::string GenerateCall::Headers() const {
  std::string lines;
  AppendRateLimitLines(quota_left_, lines);
  const std::string_view format = exchange_->head().Header(common::kLoadFormatHeader);
  if (!format.empty()) lines += MakeLoadHeader(format, *service_);
  return lines;
}

void GenerateCall::OnRequestGone() {
  // The request was dropped without a final response.
  if (exchange_ != nullptr && has_started_) exchange_.reset();
  if (exchange_ != nullptr) {
    RespondError(std::move(exchange_),
                 base::InternalError("the model sent no response to the request"));
  }
  Pool::Give(this);
}

void GenerateCall::OnDisconnect() {
  pacer_.NoteGone();
  CancelRequest();
}

void GenerateCall::OnStreamWritable() { pacer_.NoteWritable(); }

void GenerateCall::Recycle() {
  service_ = nullptr;
  in_flight_.Reset();
  is_stream_ = false;
  has_started_ = false;
  response_count_ = 0;
  quota_left_ = {};
  error_ = base::OkStatus();
  text_.clear();
  trace_.reset();
  if (text_.capacity() > kKeptBytes) std::string().swap(text_);
  pacer_.Reset();
}

}  // namespace nereid::http
