// SPDX-License-Identifier: Apache-2.0
// Spans and their protobuf encoding in OTLP.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "observe/trace_context.h"

namespace nereid::observe {

// A span. A value type.
struct Span {
  // A moment within the span.
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

// Returns the bytes of an ExportTraceServiceRequest.
std::string EncodeSpans(const std::vector<std::pair<std::string, std::string>>& resource,
                        const std::deque<Span>& spans);

}  // namespace nereid::observe
