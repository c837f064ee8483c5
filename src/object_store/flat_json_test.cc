// SPDX-License-Identifier: Apache-2.0
#include "object_store/flat_json.h"

#include <gtest/gtest.h>

namespace nereid::object_store {
namespace {

TEST(AFlatJson, HasValuesByTheirPaths) {
  const auto json = ParseFlatJson(
      R"({"a": "x", "b": {"c": 3, "d": [true, {"e": 1.5}], "n": null}, "a": "second"})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*json, (FlatJson{{"a", "x"}, {"b.c", "3"}, {"b.d.0", "true"}, {"b.d.1.e", "1.5"}}));
  EXPECT_EQ(ValueOf(*json, "b.c"), "3");
  EXPECT_EQ(ValueOf(*json, "b"), "");
}

TEST(AFlatJson, IsRefusedWithoutAQuoteWhereItIsBroken) {
  for (const char* text : {"", "[]", "\"secret\"", "{\"secret\": ", "{} secret", "secret"}) {
    const auto json = ParseFlatJson(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.status().message().find("secret"), std::string_view::npos);
  }
}

TEST(AFlatJson, SurvivesDeepNests) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "{\"a\":";
  EXPECT_FALSE(ParseFlatJson(text).ok());
  text += "1";
  for (int i = 0; i < 200'000; ++i) text += "}";
  const auto json = ParseFlatJson(text);
  EXPECT_TRUE(!json.ok() || json->empty());
}

}  // namespace
}  // namespace nereid::object_store
