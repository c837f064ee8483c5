// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_context.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01";

TEST(ATraceContext, IsReadAndWritten) {
  const auto context = ParseTraceParent(kParent, "a=b");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id[0], 0x0a);
  EXPECT_EQ(context->span_id[7], 0x24);
  EXPECT_EQ(context->flags, 1);
  EXPECT_EQ(context->state, "a=b");
  EXPECT_EQ(FormatTraceParent(*context), kParent);
}

TEST(ATraceContext, IsRefusedIfMalformed) {
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
  // A later version may append more fields.
  EXPECT_TRUE(ParseTraceParent(with(0, "01") + "-more", ""));
  EXPECT_FALSE(ParseTraceParent(with(0, "01") + "more", ""));
}

TEST(ATraceContext, HasIdsThatAreNotZeroAndDiffer) {
  const SpanIdBytes first = RandomSpanId();
  EXPECT_NE(first, SpanIdBytes{});
  EXPECT_NE(first, RandomSpanId());
  EXPECT_NE(RandomTraceId(), RandomTraceId());
}

}  // namespace
}  // namespace nereid::observe
