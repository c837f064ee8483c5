// SPDX-License-Identifier: Apache-2.0
// The identity of a span, as the W3C recommendation of trace contexts defines it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::observe {

using TraceIdBytes = std::array<uint8_t, 16>;
using SpanIdBytes = std::array<uint8_t, 8>;

// The identity of one span. A value type.
struct SpanContext {
  TraceIdBytes trace_id{};
  SpanIdBytes span_id{};
  uint8_t flags = 1;
  std::string state;
};

// Parses the headers of the W3C recommendation. Returns nothing if `traceparent` is malformed.
std::optional<SpanContext> ParseTraceParent(std::string_view traceparent,
                                            std::string_view tracestate);
// Returns "00-<trace id>-<span id>-<flags>".
std::string FormatTraceParent(const SpanContext& context);
SpanIdBytes RandomSpanId();
TraceIdBytes RandomTraceId();

}  // namespace nereid::observe
