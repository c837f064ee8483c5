// SPDX-License-Identifier: Apache-2.0
// Spans and their export to an OpenTelemetry collector, by OTLP over HTTP in protobuf encoding.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"

namespace nereid::observe {

using TraceIdBytes = std::array<uint8_t, 16>;
using SpanIdBytes = std::array<uint8_t, 8>;

struct SpanContext {
  TraceIdBytes trace_id{};
  SpanIdBytes span_id{};
  uint8_t flags = 1;
  std::string state;
};

// From the headers of the W3C recommendation; nothing when `traceparent` is not one.
std::optional<SpanContext> ParseTraceParent(std::string_view traceparent,
                                            std::string_view tracestate);
// "00-<trace id>-<span id>-<flags>"
std::string FormatTraceParent(const SpanContext& context);
SpanIdBytes RandomSpanId();
TraceIdBytes RandomTraceId();

struct Span {
  struct Event {
    std::string name;
    uint64_t unix_ns = 0;
  };
  using Attribute = std::pair<std::string, std::variant<std::string, int64_t>>;

  std::string name;
  SpanContext context;
  std::optional<SpanIdBytes> parent;
  uint64_t start_unix_ns = 0;
  uint64_t end_unix_ns = 0;
  std::vector<Event> events;
  std::vector<Attribute> attributes;
};

// The bytes of an ExportTraceServiceRequest.
std::string EncodeSpans(const std::vector<std::pair<std::string, std::string>>& resource,
                        const std::deque<Span>& spans);

struct OtlpOptions {
  std::string url = "http://localhost:4318/v1/traces";
  // Attributes of the process, besides service.name and telemetry.sdk.*.
  std::vector<std::pair<std::string, std::string>> resource;
  uint32_t max_queue_size = 2048;  // what is more is thrown away
  std::chrono::milliseconds schedule_delay{5000};
  uint32_t max_export_batch_size = 512;
};

struct HttpUrl {
  std::string host;
  std::string port;
  std::string path;
};
// http://host[:port]/path, or the same without http://.
base::Result<HttpUrl> ParseHttpUrl(std::string_view url);

// Sends spans from a thread of its own. Thread-safe.
class OtlpExporter {
 public:
  // The error is that of a URL that cannot be served.
  static base::Result<std::unique_ptr<OtlpExporter>> Start(OtlpOptions options);
  // Sends what is left, if the collector takes it.
  ~OtlpExporter();

  void Add(Span span);

 private:
  OtlpExporter(OtlpOptions options, HttpUrl url);

  void Run();
  void Send(const std::deque<Span>& spans);

  const OtlpOptions options_;
  const HttpUrl url_;
  std::vector<std::pair<std::string, std::string>> resource_;
  bool has_failed_ = false;  // confined to the thread
  base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<Span> queue_ NEREID_GUARDED_BY(mutex_);
  uint64_t dropped_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;  // last: it uses what stands above
};

}  // namespace nereid::observe
