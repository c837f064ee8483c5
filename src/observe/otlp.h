// SPDX-License-Identifier: Apache-2.0
// Spans and their export to an OpenTelemetry collector, by OTLP over HTTP in protobuf encoding.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "http_client/http_client.h"
#include "observe/otlp_options.h"

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

// Sends spans from a thread of its own; a batch that the collector cannot take now is sent again a
// few times, then thrown away. Thread-safe.
class OtlpExporter {
 public:
  // The error is that of a URL that cannot be served.
  static base::Result<std::unique_ptr<OtlpExporter>> Start(OtlpOptions options);
  // Sends what is left, if the collector takes it at once; gives up what it has not taken after ten
  // seconds.
  ~OtlpExporter();

  void Add(Span span);

 private:
  OtlpExporter(OtlpOptions options, std::string url);

  void Run();
  void Send(const std::deque<Span>& spans);
  base::Status Post(std::string body);

  const OtlpOptions options_;
  const std::string url_;
  std::vector<std::pair<std::string, std::string>> resource_;
  http_client::HttpClient client_;
  std::stop_source retries_;   // stopped when the exporter ends: every batch has one more attempt
  std::stop_source requests_;  // stopped when its time is over
  bool has_failed_ = false;    // confined to the thread
  base::Mutex mutex_;
  base::CondVar wake_;
  base::CondVar done_;
  std::deque<Span> queue_ NEREID_GUARDED_BY(mutex_);
  uint64_t dropped_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_done_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;  // last: it uses what stands above
};

}  // namespace nereid::observe
