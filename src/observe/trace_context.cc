// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_context.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace nereid::observe {
namespace {

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
  // Later versions may append more fields.
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

}  // namespace nereid::observe
