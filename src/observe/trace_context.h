// SPDX-License-Identifier: Apache-2.0
// Which trace a span belongs to, as the W3C recommendation of trace contexts has it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::observe {

using TraceIdBytes = std::array<uint8_t, 16>;
using SpanIdBytes = std::array<uint8_t, 8>;

// A value type.
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

}  // namespace nereid::observe
