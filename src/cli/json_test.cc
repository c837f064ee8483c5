// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

rapidjson::Document Parse(std::string_view text) {
  rapidjson::Document document;
  EXPECT_TRUE(ParseJson(text, document)) << text;
  return document;
}

bool IsJson(std::string_view text) {
  rapidjson::Document document;
  document.SetArray();
  const bool is_json = ParseJson(text, document);
  EXPECT_TRUE(is_json || document.IsNull());
  return is_json;
}

TEST(Json, EveryDoubleIsReadAndWrittenExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    const auto document = Parse(fmt::format("[{:.17g}]", number));
    ASSERT_EQ(std::bit_cast<uint64_t>(document[0].GetDouble()), std::bit_cast<uint64_t>(number))
        << fmt::format("{:.17g}", number);
    const auto again = Parse(WriteJson(document));
    ASSERT_EQ(again[0].GetDouble(), number);
  }
}

TEST(Json, NumbersWithManyDigitsBecomeTheNearestDouble) {
  EXPECT_EQ(Parse("0.30000000000000004").GetDouble(), 0.30000000000000004);
  EXPECT_EQ(Parse(" 179769313486231570000e288 ").GetDouble(), 1.7976931348623157e308);
  EXPECT_EQ(Parse("{\"a\":0." + std::string(400, '0') + "}")["a"].GetDouble(), 0);
  EXPECT_EQ(Parse("123456789012345678901234567890").GetDouble(), 123456789012345678901234567890.0);
  EXPECT_EQ(Parse("5e-324").GetDouble(), 5e-324);
  EXPECT_EQ(Parse("-0.0").GetDouble(), 0);
  EXPECT_TRUE(std::signbit(Parse("-0.0").GetDouble()));
}

TEST(Json, IntegersOf64BitsStayIntegers) {
  EXPECT_EQ(WriteJson(Parse("[-9223372036854775808,18446744073709551615]")),
            "[-9223372036854775808,18446744073709551615]");
}

TEST(Json, NotANumberAndInfinityAreBareWords) {
  const auto document = Parse("[NaN,Infinity,-Infinity,-Inf]");
  EXPECT_TRUE(std::isnan(document[0].GetDouble()));
  EXPECT_EQ(WriteJson(document), "[NaN,Infinity,-Infinity,-Infinity]");
}

TEST(Json, WhatIsNoJsonIsRefused) {
  for (const char* text : {"", " ", "{", "[1,]", "01", "1 2", "nul", "'a'", "{\"a\"}", "1e999",
                           "\"\x01\"", "[1e]", "\"\\ud800\""}) {
    EXPECT_FALSE(IsJson(text)) << text;
  }
}

TEST(Json, NestingThatCouldExhaustTheStackIsRefused) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(WriteJson(Parse(nested(1000))), nested(1000));
  EXPECT_FALSE(IsJson(nested(1001)));
  EXPECT_FALSE(IsJson(nested(2'000'000)));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(IsJson(objects + "1" + std::string(100'000, '}')));
  // Beside each other, arrays are not nested.
  std::string beside = "[[]";
  for (int i = 0; i < 5000; ++i) beside += ",[],{}";
  EXPECT_TRUE(IsJson(beside + "]"));
}

TEST(Json, MembersOfAnotherTypeAreAsIfMissing) {
  const auto document = Parse(R"({"text":"t","zero":"a\u0000b","count":3,"minus":-1,"list":[1]})");
  EXPECT_EQ(TextOf(document, "text"), "t");
  EXPECT_EQ(TextOf(document, "zero"), std::string_view("a\0b", 3));
  EXPECT_EQ(NumberOf(document, "count"), 3U);
  EXPECT_EQ(ListOf(document, "list").Size(), 1U);
  EXPECT_EQ(TextOf(document, "count"), "");
  EXPECT_EQ(NumberOf(document, "minus"), 0U);
  EXPECT_EQ(NumberOf(document, "text"), 0U);
  EXPECT_EQ(ListOf(document, "text").Size(), 0U);
  EXPECT_EQ(MemberOf(document, "other"), nullptr);
  for (const char* text : {"null", "[]", "1", "\"text\""}) {
    EXPECT_EQ(MemberOf(Parse(text), "text"), nullptr);
    EXPECT_EQ(ListOf(Parse(text), "text").Size(), 0U);
  }
}

TEST(Json, TheEmptyReplyIsAnEmptyObjectAndAPageOfHtmlIsAnError) {
  EXPECT_TRUE(ParseReply("")->IsObject());
  EXPECT_EQ(ParseReply("<html>").status().message(),
            "the reply is not JSON: is this a server of models?");
}

}  // namespace
}  // namespace nereid::cli
