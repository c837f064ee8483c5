// SPDX-License-Identifier: Apache-2.0
// Field numbers: opentelemetry/proto/trace/v1/trace.proto and its imports.
#include "observe/otlp.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/log.h"
#include "http_client/retry.h"
#include "http_client/url.h"

namespace nereid::observe {
namespace {

// How long one request may take and, when the exporter ends, all that is left.
constexpr std::chrono::seconds kTimeout{10};

// -- Protobuf, as much of it as is needed. --

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutBytes(std::string& out, uint32_t field, std::string_view bytes) {
  PutVarint(out, field << 3 | 2);
  PutVarint(out, bytes.size());
  out += bytes;
}

template <size_t size>
void PutBytes(std::string& out, uint32_t field, const std::array<uint8_t, size>& bytes) {
  PutBytes(out, field, {reinterpret_cast<const char*>(bytes.data()), size});
}

void PutNumber(std::string& out, uint32_t field, uint64_t value) {
  PutVarint(out, field << 3);
  PutVarint(out, value);
}

void PutFixed64(std::string& out, uint32_t field, uint64_t value) {
  PutVarint(out, field << 3 | 1);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void PutAttribute(std::string& out, uint32_t field, const Span::Attribute& attribute) {
  std::string value;
  if (const auto* text = std::get_if<std::string>(&attribute.second); text != nullptr) {
    PutBytes(value, 1, *text);
  } else {
    PutNumber(value, 3, static_cast<uint64_t>(std::get<int64_t>(attribute.second)));
  }
  std::string pair;
  PutBytes(pair, 1, attribute.first);
  PutBytes(pair, 2, value);
  PutBytes(out, field, pair);
}

std::string EncodeSpan(const Span& span) {
  constexpr uint64_t kServer = 2;
  std::string out;
  PutBytes(out, 1, span.context.trace_id);
  PutBytes(out, 2, span.context.span_id);
  if (!span.context.state.empty()) PutBytes(out, 3, span.context.state);
  if (span.parent) PutBytes(out, 4, *span.parent);
  PutBytes(out, 5, span.name);
  PutNumber(out, 6, kServer);
  PutFixed64(out, 7, span.start_unix_ns);
  PutFixed64(out, 8, span.end_unix_ns);
  for (const Span::Attribute& attribute : span.attributes) PutAttribute(out, 9, attribute);
  for (const Span::Event& event : span.events) {
    std::string text;
    PutFixed64(text, 1, event.unix_ns);
    PutBytes(text, 2, event.name);
    PutBytes(out, 11, text);
  }
  return out;
}

// -- W3C trace context. --

template <size_t size>
bool ReadHex(std::string_view text, std::array<uint8_t, size>& bytes) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() != 2 * size) return false;
  for (size_t i = 0; i < size; ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

template <typename Bytes>
std::string Hex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

template <size_t size>
std::array<uint8_t, size> RandomBytes() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  std::array<uint8_t, size> bytes{};
  while (std::ranges::all_of(bytes, [](uint8_t b) { return b == 0; })) {
    for (size_t i = 0; i < size; i += 8) {
      const uint64_t value = engine();
      std::memcpy(bytes.data() + i, &value, 8);
    }
  }
  return bytes;
}

// Whether OTLP lets a request with this reply be repeated.
bool MayPass(const http_client::HttpReply& reply) {
  if (!reply.failure.empty()) return !reply.is_final;
  return reply.status == 429 || (reply.status >= 502 && reply.status <= 504);
}

}  // namespace

std::optional<SpanContext> ParseTraceParent(std::string_view traceparent,
                                            std::string_view tracestate) {
  constexpr size_t kLength = 55;
  SpanContext context;
  std::array<uint8_t, 1> version{};
  std::array<uint8_t, 1> flags{};
  if (traceparent.size() < kLength || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-' || !ReadHex(traceparent.substr(0, 2), version) ||
      !ReadHex(traceparent.substr(3, 32), context.trace_id) ||
      !ReadHex(traceparent.substr(36, 16), context.span_id) ||
      !ReadHex(traceparent.substr(53, 2), flags)) {
    return std::nullopt;
  }
  // Later versions may say more behind it.
  if (version[0] == 0xFF || (version[0] == 0 && traceparent.size() != kLength) ||
      (traceparent.size() > kLength && traceparent[kLength] != '-')) {
    return std::nullopt;
  }
  if (context.trace_id == TraceIdBytes{} || context.span_id == SpanIdBytes{}) return std::nullopt;
  context.flags = flags[0];
  context.state = tracestate;
  return context;
}

std::string FormatTraceParent(const SpanContext& context) {
  return fmt::format("00-{}-{}-{:02x}", Hex(context.trace_id), Hex(context.span_id), context.flags);
}

SpanIdBytes RandomSpanId() { return RandomBytes<8>(); }
TraceIdBytes RandomTraceId() { return RandomBytes<16>(); }

std::string EncodeSpans(const std::vector<std::pair<std::string, std::string>>& resource,
                        const std::deque<Span>& spans) {
  std::string attributes;
  for (const auto& [key, value] : resource) PutAttribute(attributes, 1, {key, value});
  std::string scope;
  PutBytes(scope, 1, "triton-server");
  std::string scope_spans;
  PutBytes(scope_spans, 1, scope);
  for (const Span& span : spans) PutBytes(scope_spans, 2, EncodeSpan(span));
  std::string resource_spans;
  PutBytes(resource_spans, 1, attributes);
  PutBytes(resource_spans, 2, scope_spans);
  std::string request;
  PutBytes(request, 1, resource_spans);
  return request;
}

base::Result<std::unique_ptr<OtlpExporter>> OtlpExporter::Start(OtlpOptions options) {
  NEREID_ASSIGN_OR_RETURN(const http_client::Url url, http_client::ParseUrl(options.url));
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(std::move(options), url.ToString()));
}

OtlpExporter::OtlpExporter(OtlpOptions options, std::string url)
    : options_(std::move(options)), url_(std::move(url)), client_({.ca_file = options_.ca_file}) {
  resource_ = {{"service.name", "triton-inference-server"},
               {"telemetry.sdk.language", "cpp"},
               {"telemetry.sdk.name", "nereid"}};
  for (const auto& [key, value] : options_.resource) {
    const auto known = std::ranges::find(resource_, key, &decltype(resource_)::value_type::first);
    if (known != resource_.end()) {
      known->second = value;
    } else {
      resource_.emplace_back(key, value);
    }
  }
  thread_ = base::Thread("otlp", [this] {
    Run();
    base::MutexLock lock(mutex_);
    is_done_ = true;
    done_.NotifyOne();
  });
}

OtlpExporter::~OtlpExporter() {
  retries_.request_stop();
  {
    base::MutexLock lock(mutex_);
    is_ending_ = true;
    wake_.NotifyOne();
  }
  {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + kTimeout;
    base::MutexLock lock(mutex_);
    while (!is_done_ && done_.WaitUntil(mutex_, deadline)) {
    }
  }
  requests_.request_stop();
  thread_.Join();
}

void OtlpExporter::Add(Span span) {
  base::MutexLock lock(mutex_);
  if (queue_.size() >= options_.max_queue_size) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(span));
  if (queue_.size() >= options_.max_export_batch_size) wake_.NotifyOne();
}

void OtlpExporter::Run() {
  base::TimePoint due = std::chrono::steady_clock::now() + options_.schedule_delay;
  while (true) {
    std::deque<Span> batch;
    uint64_t dropped = 0;
    bool is_ending = false;
    {
      base::MutexLock lock(mutex_);
      while (!is_ending_ && queue_.size() < options_.max_export_batch_size) {
        if (!wake_.WaitUntil(mutex_, due)) break;
      }
      is_ending = is_ending_;
      const size_t count = std::min<size_t>(queue_.size(), options_.max_export_batch_size);
      for (size_t i = 0; i < count; ++i) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      dropped = std::exchange(dropped_, 0);
    }
    if (dropped > 0) {
      // The first sentence is OpenTelemetry's, which people look for.
      NEREID_LOG(kWarning,
                 "BatchSpanProcessor queue is full - dropping span. {} were dropped: the collector "
                 "is too slow",
                 dropped);
    }
    if (!batch.empty()) Send(batch);
    if (is_ending && (batch.empty() || has_failed_)) return;
    due = std::chrono::steady_clock::now() + options_.schedule_delay;
  }
}

void OtlpExporter::Send(const std::deque<Span>& spans) {
  const base::Status status = Post(EncodeSpans(resource_, spans));
  const bool had_failed = std::exchange(has_failed_, !status.ok());
  // Once, not with every batch.
  if (!status.ok() && !had_failed) {
    NEREID_LOG(kError, "failed to export {} spans to {}: {}", spans.size(), options_.url,
               status.message());
  }
}

base::Status OtlpExporter::Post(std::string body) {
  http_client::HttpRequest request;
  request.method = http_client::Method::kPost;
  request.url = url_;
  request.headers = {{"content-type", "application/x-protobuf"}};
  request.body = std::move(body);
  request.timeout = kTimeout;
  request.stop = requests_.get_token();
  http_client::Attempts attempts({}, retries_.get_token());
  while (true) {
    const http_client::HttpReply reply = client_.Send(request);
    if (reply.is_success()) return base::OkStatus();
    if (MayPass(reply) && attempts.Next()) {
      attempts.Pause();
      continue;
    }
    return base::UnavailableError(
        reply.failure.empty() ? fmt::format("the collector answers with status {}", reply.status)
                              : reply.failure);
  }
}

}  // namespace nereid::observe
