// SPDX-License-Identifier: Apache-2.0
#include "openai/json_value.h"

#include <gtest/gtest.h>

namespace nereid::openai {
namespace {

std::string AgainAsText(std::string_view text) {
  rapidjson::Document document;
  const base::Status status = ParseBody(text, document);
  if (!status.ok()) return std::string(status.message());
  std::string json;
  AppendJson(document, json);
  return json;
}

TEST(JsonValue, IsTheSameAsTextAgain) {
  for (const std::string_view text :
       {R"({})", R"({"a":[],"b":{},"c":[1,-2,18446744073709551615,0.5,1e300]})",
        R"({"a":[true,false,null,"x\"\\\n"],"b":{"c":[{"d":1}]}})"}) {
    EXPECT_EQ(AgainAsText(text), text);
  }
}

TEST(JsonValue, MustBeAnObject) {
  EXPECT_EQ(AgainAsText("[1]"), "the request must be a JSON object, not an array");
  EXPECT_TRUE(AgainAsText("{").starts_with("failed to parse the request JSON buffer: "));
}

TEST(JsonValue, MustBeUtf8) {
  EXPECT_EQ(AgainAsText("{\"a\":\"\xC3\xA4\"}"), "{\"a\":\"\xC3\xA4\"}");
  EXPECT_EQ(AgainAsText("{\"a\":\"\xC3\"}"), "the request is not valid UTF-8");
}

TEST(JsonValue, IsNotReadBeyondALimitOfDepth) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(AgainAsText(nested(kMaxJsonDepth)), nested(kMaxJsonDepth));
  EXPECT_EQ(AgainAsText(nested(kMaxJsonDepth + 1)),
            "the JSON of the request is nested deeper than 100 levels");
  // Brackets in texts do not count.
  const std::string text = R"({"a":"\")" + std::string(500, '[') + "\"}";
  EXPECT_EQ(AgainAsText(text), text);
}

}  // namespace
}  // namespace nereid::openai
