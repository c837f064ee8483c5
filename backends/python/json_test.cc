// SPDX-License-Identifier: Apache-2.0
#include "python_backend/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

namespace nereid::python {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text, const JsonLimits& limits = kFlatJson) {
  auto parsed = ParseObject(text, "labels", limits);
  return parsed.ok() ? "" : parsed.TakeError().message();
}

std::string Repeat(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(WorkersJson, IsReadWhereItIsAnObject) {
  auto parsed = ParseObject(R"({"a":"text","b":-7,"c":true,"d":1.5,"e":null})", "labels");
  ASSERT_TRUE(parsed.ok());
  const rapidjson::Document& document = parsed.value();
  EXPECT_STREQ(document["a"].GetString(), "text");
  EXPECT_EQ(document["b"].GetInt64(), -7);
  EXPECT_TRUE(document["c"].GetBool());
  EXPECT_EQ(document["d"].GetDouble(), 1.5);
  EXPECT_TRUE(document["e"].IsNull());
}

TEST(WorkersJson, IsRefusedWhereItIsNone) {
  for (const char* text : {"", "null", "7", "\"text\"", "[]", "{", "{\"a\":}", "{} {}", "{\"a\":1",
                           "{\"\xff\":1}", "{'a':1}", "nul"}) {
    EXPECT_EQ(ErrorOf(text), "labels are not a JSON object") << text;
  }
}

TEST(WorkersJson, LosesNoBitOfADouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    char text[64];
    std::snprintf(text, sizeof(text), "{\"a\":%.17e}", number);
    auto parsed = ParseObject(text, "parameters");
    ASSERT_TRUE(parsed.ok()) << text;
    ASSERT_EQ(parsed.value()["a"].GetDouble(), number) << text;
  }
}

TEST(WorkersJson, HasWhatPythonWritesForDoublesThatJsonLacksOnlyInParameters) {
  const std::string text = R"({"a":NaN,"b":Infinity,"c":-Infinity})";
  auto parsed = ParseObject(text, "parameters");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(std::isnan(parsed.value()["a"].GetDouble()));
  EXPECT_EQ(parsed.value()["b"].GetDouble(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed.value()["c"].GetDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(ErrorOf(text, kConfigJson), "labels are not a JSON object");
}

TEST(WorkersJson, ThatIsNestedAMillionDeepIsAnError) {
  constexpr size_t kDeep = 1'000'000;
  for (const JsonLimits& limits : {kFlatJson, kConfigJson}) {
    const std::string expected =
        backend::StrCat("labels are nested more than ", limits.depth, " deep");
    EXPECT_EQ(ErrorOf(Repeat("{\"a\":", kDeep), limits), expected);
    EXPECT_EQ(ErrorOf("{\"a\":" + Repeat("[", kDeep) + Repeat("]", kDeep) + "}", limits), expected);
    EXPECT_EQ(ErrorOf(Repeat("{\"a\":[", kDeep), limits), expected);
  }
}

TEST(WorkersJson, HasNoHalvesOfSurrogatePairs) {
  EXPECT_EQ(ErrorOf("{\"a\":\"\\udc80\"}"), "labels have a text that is not UTF-8");
  EXPECT_EQ(ErrorOf("{\"\\udfff\":1}"), "labels have a text that is not UTF-8");
  EXPECT_EQ(ErrorOf("{\"a\":\"\\ud83d\\ude00 \xed\x9f\xbf\"}"), "");
}

TEST(WorkersJson, MayBeAsDeepAsItsLimitAndNoDeeper) {
  const JsonLimits limits{.depth = 3};
  EXPECT_EQ(ErrorOf(R"({"a":[{"b":1}],"c":[{"d":2}]})", limits), "");
  EXPECT_EQ(ErrorOf(R"({"a":[{"b":[]}]})", limits), "labels are nested more than 3 deep");
}

TEST(WorkersJson, HasNoMoreBytesOrValuesThanItsLimits) {
  EXPECT_EQ(ErrorOf("{\"a\":\"" + std::string(kFlatJson.bytes, 'x') + "\"}"),
            "labels are longer than 16777216 bytes");
  const std::string full = "{\"a\":[" + Repeat("1,", 97) + "1]}";
  EXPECT_EQ(ErrorOf(full, {.depth = 2, .values = 100}), "");
  EXPECT_EQ(ErrorOf(full, {.depth = 2, .values = 99}), "labels have more than 99 values");
}

TEST(WorkersJson, OfAnyBytesIsReadOrRefused) {
  std::mt19937 random(7);
  constexpr std::string_view kParts[] = {"{",    "}",       "[",     "]",     ":",        ",",
                                         "\"",   "\\",      "\"a\"", "1e999", "-1",       "true",
                                         "null", "\\ud800", "\xc3",  " ",     "{\"a\":1}"};
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "{\"a\":" : "";
    for (uint32_t left = random() % 12; left > 0; --left) {
      text += kParts[random() % std::size(kParts)];
    }
    auto parsed = ParseObject(text, "labels", kConfigJson);
    if (!parsed.ok()) {
      EXPECT_THAT(parsed.TakeError().message(),
                  testing::AnyOf(HasSubstr("labels are"), HasSubstr("labels have")));
    }
  }
}

TEST(WorkersJson, GivesParametersByTheirTypes) {
  std::string seen;
  const auto keep = [&](const char* name, const auto& value) -> TRITONSERVER_Error* {
    seen += backend::StrCat(name, "=", value, ";");
    return nullptr;
  };
  EXPECT_TRUE(ForEachParameter("", "labels", keep, keep, keep).ok());
  EXPECT_TRUE(ForEachParameter("{}", "labels", keep, keep, keep).ok());
  EXPECT_TRUE(ForEachParameter(R"({"a":"x","b":2,"c":true})", "labels", keep, keep, keep).ok());
  EXPECT_EQ(seen, "a=x;b=2;c=1;");
  backend::Error error = ForEachParameter(R"({"a":1.5})", "labels", keep, keep, keep);
  EXPECT_STREQ(error.message(), "Unsupported value type on parameters");
}

}  // namespace
}  // namespace nereid::python
