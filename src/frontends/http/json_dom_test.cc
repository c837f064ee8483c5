// SPDX-License-Identifier: Apache-2.0
#include "http/json_dom.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace nereid::http {
namespace {

TEST(JsonDom, ReadsNoTextWhoseLengthItCannotCount) {
  const char* const text = "[1]";
  rapidjson::Document document;
  const base::Status error = ParseJson({text, (size_t{4} << 30) + 3}, document);  // not looked at
  EXPECT_EQ(base::StatusCode::kInvalidArgument, error.code());
  EXPECT_TRUE(ParseJson({text, 3}, document).ok());
}

TEST(JsonDom, ReadsNumbersExactly) {
  for (const char* number :
       {"0e50", "0E-50", "-0e40", "0.0e+300", "-0.0e-300", "0.00000000000000000000000000000",
        "-0.000000000000000000000000000e5", "0.0", "-0.0", "1e-50", "10e50", "0.1",
        "1.7976931348623157e308", "5e-324", "100000000000000000000000000000000",
        "0.000000000000000000000000000000000001", "123456789.000000000000000000000000000001",
        "9007199254740993.0"}) {
    for (const std::string& text :
         {std::string(number), "[" + std::string(number) + "]",
          "[0e33, " + std::string(number) + " ]", "{\"a\":" + std::string(number) + "}"}) {
      rapidjson::Document document;
      ASSERT_TRUE(ParseJson(text, document).ok()) << text;
      const JsonValue& value = document.IsArray()    ? document[document.Size() - 1]
                               : document.IsObject() ? document["a"]
                                                     : document;
      // Compares the sign of zero, too.
      EXPECT_EQ(std::bit_cast<uint64_t>(value.GetDouble()),
                std::bit_cast<uint64_t>(std::strtod(number, nullptr)))
          << text;
    }
  }
}

TEST(JsonDom, ReadsNanAndInfinityAndWhatFollowsThem) {
  rapidjson::Document document;
  ASSERT_TRUE(ParseJson("[NaN, -Inf, Infinity, 0e30, \"0e30\", 7]", document).ok());
  EXPECT_TRUE(std::isnan(document[0].GetDouble()));
  EXPECT_EQ(document[1].GetDouble(), -INFINITY);
  EXPECT_EQ(document[2].GetDouble(), INFINITY);
  EXPECT_EQ(document[3].GetDouble(), 0);
  EXPECT_STREQ(document[4].GetString(), "0e30");
  EXPECT_EQ(document[5].GetUint64(), 7u);
}

TEST(JsonDom, SaysWhereAnErrorIs) {
  rapidjson::Document document;
  EXPECT_EQ(ParseJson("[1, 2", document).message(),
            "failed to parse the request JSON buffer: Missing a comma or ']' after an array "
            "element. at 5");
}

}  // namespace
}  // namespace nereid::http
