// SPDX-License-Identifier: Apache-2.0
#include "cli/values.h"

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

Seconds ReadSeconds(std::string_view text) {
  Seconds value{-1};
  return ReadValue(text, value).ok() ? value : Seconds(-1);
}

TEST(Values, TimesHaveUnits) {
  EXPECT_EQ(ReadSeconds("2"), Seconds(2));
  EXPECT_EQ(ReadSeconds("1.5s"), Seconds(1.5));
  EXPECT_EQ(ReadSeconds("20ms"), Seconds(0.02));
  EXPECT_DOUBLE_EQ(ReadSeconds("300us").count(), 0.0003);
  EXPECT_EQ(ReadSeconds("5m"), Seconds(300));
  EXPECT_EQ(ReadSeconds("1h"), Seconds(3600));
  for (const char* text : {"", "s", "-1s", "1 s", "1d", "inf", "nan", "1e999"}) {
    EXPECT_EQ(ReadSeconds(text), Seconds(-1)) << text;
  }
}

TEST(Values, TimesAreShownInTheUnitThatFits) {
  EXPECT_EQ(FormatValue(Seconds(0.02)), "20ms");
  EXPECT_EQ(FormatValue(Seconds(1.5)), "1.5s");
  EXPECT_EQ(FormatValue(Seconds(300)), "5m");
  EXPECT_EQ(FormatValue(Seconds(0)), "0s");
}

TEST(Values, NumbersMustFitAndHaveNothingBehindThem) {
  int number = 7;
  EXPECT_FALSE(ReadValue("3000000000", number).ok());
  EXPECT_FALSE(ReadValue("3x", number).ok());
  EXPECT_FALSE(ReadValue("", number).ok());
  EXPECT_EQ(number, 7);
  EXPECT_TRUE(ReadValue("-3", number).ok());
  EXPECT_EQ(number, -3);
  double real = 0;
  EXPECT_FALSE(ReadValue("nan", real).ok());
  EXPECT_TRUE(ReadValue("1e3", real).ok());
  EXPECT_EQ(real, 1000);
}

}  // namespace
}  // namespace nereid::cli
