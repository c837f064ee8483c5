// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nereid::base {
namespace {

const std::vector<std::string_view> kBackends = {"identity", "onnxruntime", "python", "pytorch"};

TEST(NearestName, IsTheOneASpellingMistakeAway) {
  EXPECT_EQ(NearestName("onxruntime", kBackends), "onnxruntime");
  EXPECT_EQ(NearestName("pyhton", kBackends), "python");
  EXPECT_EQ(NearestName("pytorh", kBackends), "pytorch");
}

TEST(NearestName, IgnoresCase) { EXPECT_EQ(NearestName("ONNXRuntime", kBackends), "onnxruntime"); }

TEST(NearestName, IsTheOneWithTheSamePrefix) {
  EXPECT_EQ(NearestName("onnx", kBackends), "onnxruntime");
  EXPECT_EQ(NearestName("onnxruntime_onnx", kBackends), "onnxruntime");
}

TEST(NearestName, IsNoneWhereNothingIsClose) {
  EXPECT_EQ(NearestName("tensorrt", kBackends), "");
  EXPECT_EQ(NearestName("o", kBackends), "");
  EXPECT_EQ(NearestName("", kBackends), "");
  EXPECT_EQ(NearestName("v", std::vector<std::string_view>{"id"}), "");
  EXPECT_EQ(NearestName("python", {}), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'x'), kBackends), "");
}

TEST(NearestName, IsSuggestedInAMessage) {
  EXPECT_EQ(DidYouMean("pyton", kBackends), "; did you mean 'python'?");
  EXPECT_EQ(DidYouMean("tensorrt", kBackends), "");
}

TEST(QuotedList, ReadsLikeASentence) {
  EXPECT_EQ(QuotedList({}), "");
  EXPECT_EQ(QuotedList(std::vector<std::string_view>{"a"}), "'a'");
  EXPECT_EQ(QuotedList(std::vector<std::string_view>{"a", "b"}), "'a' and 'b'");
  EXPECT_EQ(QuotedList(std::vector<std::string_view>{"a", "b", "c"}), "'a', 'b' and 'c'");
}

TEST(QuotedList, ShowsTheFirstTenOfMany) {
  const std::vector<std::string_view> many(12, "x");
  EXPECT_EQ(QuotedList(many), "'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x' and 2 more");
}

}  // namespace
}  // namespace nereid::base
