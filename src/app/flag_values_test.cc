// SPDX-License-Identifier: Apache-2.0
#include "app/flag_values.h"

#include <gtest/gtest.h>

namespace nereid::app {
namespace {

template <typename T>
std::string Why(const base::Result<T>& result) {
  return std::string(result.status().message());
}

TEST(ReadBool, TakesTheWordsOfTritonInAnyCase) {
  for (const char* text : {"true", "TRUE", "on", "On", "1"}) EXPECT_TRUE(*ReadBool(text)) << text;
  for (const char* text : {"false", "False", "off", "0"}) EXPECT_FALSE(*ReadBool(text)) << text;
  for (const char* text : {"", "yes", "2", "true ", "tru"}) {
    EXPECT_EQ(Why(ReadBool(text)), "expected true or false") << text;
  }
}

TEST(ReadInteger, TakesWholeNumbersOfTheRange) {
  EXPECT_EQ(*ReadInteger("0", 0, 9), 0);
  EXPECT_EQ(*ReadInteger("9", 0, 9), 9);
  EXPECT_EQ(*ReadInteger("-3", -5), -3);
  EXPECT_EQ(*ReadInteger("9223372036854775807", 0), INT64_MAX);
}

TEST(ReadInteger, SaysWhichNumbersItTakes) {
  for (const char* text : {"", "x", "1x", " 1", "1.5", "10", "-1", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(Why(ReadInteger(text, 0, 9)), "expected a whole number from 0 to 9") << text;
  }
  EXPECT_EQ(Why(ReadInteger("0", 1)), "expected a whole number of at least 1");
  EXPECT_EQ(Why(ReadInteger("x", INT64_MIN)), "expected a whole number");
}

TEST(ReadChoice, TakesOneOfTheWordsInAnyCase) {
  constexpr std::string_view kWords[] = {"none", "poll", "explicit"};
  EXPECT_EQ(*ReadChoice("Poll", kWords), 1u);
  EXPECT_EQ(*ReadChoice("explicit", kWords), 2u);
  EXPECT_EQ(Why(ReadChoice("x", kWords)), "expected none, poll or explicit");
  EXPECT_EQ(Why(ReadChoice("explicite", kWords)),
            "expected none, poll or explicit; did you mean 'explicit'?");
}

TEST(ReadPair, EndsTheNameAtTheFirstSeparator) {
  EXPECT_EQ(*ReadPair("a=b=c", '='), std::pair(std::string("a"), std::string("b=c")));
  EXPECT_EQ(*ReadPair("a=", '='), std::pair(std::string("a"), std::string()));
  EXPECT_EQ(Why(ReadPair("=b", '=')), "expected <name>=<value>");
  EXPECT_EQ(Why(ReadPair("a:b", '=')), "expected <name>=<value>");
}

}  // namespace
}  // namespace nereid::app
