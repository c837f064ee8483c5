// SPDX-License-Identifier: Apache-2.0
#include "observe/otlp.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01";

TEST(Otlp, ReadsAndWritesTraceContexts) {
  const auto context = ParseTraceParent(kParent, "a=b");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id[0], 0x0a);
  EXPECT_EQ(context->span_id[7], 0x24);
  EXPECT_EQ(context->flags, 1);
  EXPECT_EQ(context->state, "a=b");
  EXPECT_EQ(FormatTraceParent(*context), kParent);
}

TEST(Otlp, RefusesWhatIsNoTraceContext) {
  const std::string good(kParent);
  const auto with = [&](size_t at, std::string_view text) {
    return std::string(good).replace(at, text.size(), text);
  };
  for (const std::string& text :
       {std::string(), good.substr(1), good + "-x", with(0, "ff"), with(2, "_"), with(3, "G"),
        with(3, "A"), with(35, "x"), with(3, std::string(32, '0')), with(36, std::string(16, '0')),
        std::string(1'000'000, '0')}) {
    EXPECT_FALSE(ParseTraceParent(text, "")) << text.substr(0, 80);
  }
  // A later version may say more.
  EXPECT_TRUE(ParseTraceParent(with(0, "01") + "-more", ""));
  EXPECT_FALSE(ParseTraceParent(with(0, "01") + "more", ""));
}

TEST(Otlp, RandomIdsAreNotZeroAndDiffer) {
  const SpanIdBytes first = RandomSpanId();
  EXPECT_NE(first, SpanIdBytes{});
  EXPECT_NE(first, RandomSpanId());
  EXPECT_NE(RandomTraceId(), RandomTraceId());
}

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
  // resource_spans { resource { attributes { key value { string_value } } } scope_spans { ... } }
  EXPECT_EQ(bytes.substr(2, 12), std::string("\x0a\x0a\x0a\x08\x0a\x01"
                                             "a\x12\x03\x0a\x01"
                                             "b",
                                             12));
  EXPECT_NE(bytes.find("triton-server"), std::string::npos);
  EXPECT_NE(bytes.find(std::string("\x0a\x01k\x12\x03\x18\xac\x02", 8)), std::string::npos);
}

}  // namespace
}  // namespace nereid::observe
