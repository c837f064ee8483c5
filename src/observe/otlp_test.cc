// SPDX-License-Identifier: Apache-2.0
#include "observe/otlp.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

TEST(Otlp, EncodesSpans) {
  Span span;
  span.name = "n";
  span.context.trace_id.fill(1);
  span.context.span_id.fill(2);
  span.start_unix_ns = 3;
  span.end_unix_ns = 4;
  span.attributes = {{"k", int64_t{300}}};
  span.events = {{"e", 5}};
  std::deque<Span> spans;
  spans.push_back(span);
  const std::string bytes = EncodeSpans({{"a", "b"}}, spans);
  // The bytes encode resource_spans { resource { attributes { key value { string_value } } }
  // scope_spans { ... } }.
  EXPECT_EQ(bytes.substr(2, 12), std::string("\x0a\x0a\x0a\x08\x0a\x01"
                                             "a\x12\x03\x0a\x01"
                                             "b",
                                             12));
  EXPECT_NE(bytes.find("triton-server"), std::string::npos);
  EXPECT_NE(bytes.find(std::string("\x0a\x01k\x12\x03\x18\xac\x02", 8)), std::string::npos);
}

}  // namespace
}  // namespace nereid::observe
