// SPDX-License-Identifier: Apache-2.0
#include "http/infer_call.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "common/admission.h"
#include "common/failed_inference.h"
#include "common/json_text.h"
#include "common/load_report.h"
#include "common/response_count.h"
#include "core/model.h"
#include "http/limit_headers.h"
#include "http/load_header.h"

namespace nereid::http {
namespace {

using Pool = base::ObjectPool<InferCall>;

// The number of events that end an object's life.
constexpr uint32_t kParts = 3;

// Longer heads are sent from where they are, like parts; the socket layer may copy shorter ones.
constexpr size_t kCopiedHeadBytes = size_t{16} << 10;

// The body lies in memory that its backend can write, so JSON, which is read twice, must be copied.
base::Status CopyJson(InferBody& body, core::Request& request) {
  const size_t size = body.header_length;
  if (size == 0) return base::OkStatus();
  auto* const copy = reinterpret_cast<char*>(request.arena().Allocate(size + base::kBufferPadding));
  if (copy == nullptr) return base::UnavailableError("out of memory for the request");
  std::memcpy(copy, body.bytes.data(), size);
  std::memset(copy + size, 0, base::kBufferPadding);
  body.json_copy = {copy, size};
  return base::OkStatus();
}

void MarkAsLent(std::string_view body, core::Request& request) {
  const auto* const begin = reinterpret_cast<const std::byte*>(body.data());
  for (core::RequestInput& input : request.inputs) {
    const std::byte* const data = input.first.data;
    if (data >= begin && data < begin + body.size()) input.first.may_change = true;
  }
}

}  // namespace

void RespondError(http1::HttpExchangePtr exchange, const base::Status& error,
                  std::string_view headers, const Dialect& dialect) {
  const int status = ErrorStatus(error, dialect);
  const std::string body = ErrorJson(status, error.message(), dialect);
  std::string lines(headers);
  AppendRetryAfterLine(status, error, lines);
  http1::HttpExchange::Respond(
      std::move(exchange),
      {.status = status, .content_type = "application/json", .headers = lines, .text = body});
}

namespace {

// Returns the value with the blanks that HTTP does not count as part of it but Triton passes on:
// all but the leading spaces, of which the last stays if there is nothing else. The views lie in a
// whole line as it was received.
std::string_view WithBlanks(const http1::HttpHeader& header) {
  const char* begin = header.name.data() + header.name.size() + 1;
  const char* end = begin;
  while (*end != '\r') ++end;
  while (end - begin > 1 && *begin == ' ') ++begin;
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

base::Status ForwardHeaders(const common::HeaderForwarder& forwarder, const http1::HttpHead& head,
                            core::Request& request) {
  for (const http1::HttpHeader& header : head.headers()) {
    NEREID_RETURN_IF_ERROR(forwarder.Offer(header.name, WithBlanks(header), request));
  }
  return base::OkStatus();
}

void DirectRequest(service::Service& service, const http1::HttpHead& head, core::Request& request) {
  service.Direct(request, [&head](std::string_view name) { return head.Header(name); });
}

void InferCall::Submit(InferSubmission submission, InferRequestReader& reader,
                       service::Service& service) {
  InferCall* const self = Pool::Take();
  self->parts_left_.store(kParts);
  self->service_ = &service;
  self->in_flight_ = std::move(submission.in_flight);
  self->compression_ = submission.reply_compression;
  self->dialect_ = submission.dialect;
  core::RequestPtr request = core::Request::Create(*self);
  request->model = std::move(submission.model);
  request->round = submission.round;
  request->caller = std::move(submission.caller);
  request->times.request_start_ns = submission.exchange->received_ns();
  if (submission.trace != nullptr) [[unlikely]] {
    self->trace_ = std::move(submission.trace);
    request->trace = self->trace_;
  }
  base::Status status;
  const bool is_lent = submission.body_buffer.is_lent();
  if (is_lent) [[unlikely]]
    status = CopyJson(submission.body, *request);
  if (submission.body_buffer) request->Hold(std::move(submission.body_buffer));
  self->options_.regions =
      common::RequestRegions(submission.may_use_regions ? &service.regions() : nullptr);
  if (status.ok()) status = reader.Read(submission.body, *request, self->options_);
  if (status.ok()) status = ReadRequestTimeout(*submission.exchange, *request);
  if (is_lent) [[unlikely]]
    MarkAsLent(submission.body.bytes, *request);
  if (submission.forwarder != nullptr && status.ok()) {
    status = ForwardHeaders(*submission.forwarder, submission.exchange->head(), *request);
  }
  if (!status.ok()) {
    common::LogFailedInference(request->id, status);
    request->trace.reset();  // the request never began
    request.reset();
    self->options_.Clear();
    RespondError(std::move(submission.exchange), status, {}, *submission.dialect);
    self->Release(kParts - 1);
    return;
  }
  self->options_.regions.Attach(*request);
  if (request->model.follows_rules()) [[unlikely]]
    DirectRequest(service, submission.exchange->head(), *request);
  if (self->trace_ != nullptr) [[unlikely]] {
    self->trace_->Describe(request->model->name(), request->model->version(), request->id);
  }
  self->cancellation_.Open(*request);
  self->exchange_ = std::move(submission.exchange);
  self->exchange_->SetEvents(self);
  // From here on another thread may respond; `self` may be gone when this returns.
  service.Infer(std::move(request));
}

void InferCall::Send(core::ResponsePtr response, bool is_final) {
  if (response != nullptr) ++response_count_;
  if (!is_final) {
    // If none follows, this destroys the call.
    if (response != nullptr && response_count_ == 1) first_response_.Keep(std::move(response));
    return;
  }
  response_ = first_response_.TakeBack();
  if (response != nullptr) response_ = std::move(response);
  if (trace_ != nullptr) [[unlikely]] {
    trace_->ReportFrontend("INFER_RESPONSE_COMPLETE", base::NowNs());
  }
  const core::RequestRef request = common::EndFlight(cancellation_, response_.get(), in_flight_);
  const base::Status status = WriteBody();
  if (status.ok()) {
    SendResponse();
  } else {
    SendError(status);
  }
}

base::Status InferCall::WriteBody() {
  if (response_count_ != 1) return common::ResponseCountError(response_count_);
  if (!response_->error().ok()) return response_->error();
  return WriteInferResponse(*response_, options_, body_);
}

void InferCall::SendResponse() {
  if (trace_ != nullptr) [[unlikely]]
    trace_->ReportFrontend("HTTP_SEND_START", base::NowNs());
  const bool has_binary = !body_.parts.empty();
  std::string_view content_type = has_binary ? "application/octet-stream" : "application/json";
  std::string mime;
  AppendRateLimitLines(response_->request().quota_left, headers_);
  if (const std::string_view format = exchange_->head().Header(common::kLoadFormatHeader);
      !format.empty()) [[unlikely]] {
    headers_ += MakeLoadHeader(format, *service_);
  }
  if (has_binary && dialect_->has_mime_in_replies) {
    mime = dialect_->binary_mime;
    common::AppendJsonInteger(mime, body_.json.size());
    content_type = mime;
  } else if (has_binary) {
    headers_ += "Inference-Header-Content-Length: ";
    common::AppendJsonInteger(headers_, body_.json.size());
    headers_ += "\r\n";
  }
  if (body_.json.size() > kCopiedHeadBytes || compression_ != net::Compression::kIdentity) {
    body_.parts.insert(body_.parts.begin(), {body_.json.data(), body_.json.size(), {}});
  }
  if (compression_ != net::Compression::kIdentity) {
    std::vector<iovec> vectors;
    for (const http1::HttpBodyPart& part : body_.parts) {
      vectors.push_back({const_cast<void*>(part.data), part.size});
    }
    base::Result<net::BufferView> compressed = net::Compress(compression_, vectors);
    if (compressed.ok()) {
      const std::string_view data = compressed->data;
      body_.parts.clear();
      body_.parts.push_back({data.data(), data.size(), std::move(compressed->buffer)});
      headers_ += compression_ == net::Compression::kGzip ? "Content-Encoding: gzip\r\n"
                                                          : "Content-Encoding: deflate\r\n";
    } else {
      // The client accepts an uncompressed reply too.
      NEREID_VLOG(1, "unable to compress response: {}", compressed.status().message());
      compression_ = net::Compression::kIdentity;
    }
  }
  const bool json_is_part =
      !body_.parts.empty() && (body_.parts.front().data == body_.json.data() ||
                               compression_ != net::Compression::kIdentity);
  http1::HttpExchange::Respond(
      std::move(exchange_),
      {.status = 200,
       .content_type = content_type,
       .headers = headers_,
       .text = json_is_part ? std::string_view() : std::string_view(body_.json),
       .parts = body_.parts,
       .owner = this});
  Release(1);
}

void InferCall::SendError(const base::Status& error) {
  if (trace_ != nullptr) [[unlikely]]
    trace_->ReportFrontend("HTTP_SEND_START", base::NowNs());
  common::LogFailedInference(response_ ? response_->request().id : std::string_view(), error);
  std::string lines;
  if (response_) AppendRateLimitLines(response_->request().quota_left, lines);
  RespondError(std::move(exchange_), error, lines, *dialect_);
  NoteSent();
  response_.reset();
  Release(kParts - 1);
}

void InferCall::NoteSent() {
  if (trace_ == nullptr) [[likely]]
    return;
  trace_->ReportFrontend("HTTP_SEND_END", base::NowNs());
  trace_.reset();
}

void InferCall::ReplySent() {
  NoteSent();
  // The end of the response may end the request, and with it this object's second part.
  core::ResponsePtr response = std::move(response_);
  response.reset();
  Release(1);
}

void InferCall::OnAbandoned() { first_response_.TakeBack().reset(); }

void InferCall::OnRequestGone() {
  in_flight_.Reset();
  // The request was dropped without its last response.
  if (exchange_) SendError(common::ResponseCountError(response_count_));
  Release(1);
}

void InferCall::OnDisconnect() {
  // Dropping the reference may destroy this object.
  if (const core::RequestRef request = cancellation_.Take()) service_->Cancel(*request);
}

void InferCall::Release(uint32_t parts) {
  if (parts_left_.fetch_sub(parts) == parts) Pool::Give(this);
}

void InferCall::Recycle() {
  service_ = nullptr;
  options_.Clear();
  response_count_ = 0;
  body_.Clear();
  headers_.clear();
  trace_.reset();
}

}  // namespace nereid::http
