// SPDX-License-Identifier: Apache-2.0
// The field numbers are those of opentelemetry/proto/trace/v1/trace.proto and its imports.
#include "observe/otlp.h"

#include <array>
#include <string_view>

namespace nereid::observe {
namespace {

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

}  // namespace

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

}  // namespace nereid::observe
