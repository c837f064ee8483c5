// SPDX-License-Identifier: Apache-2.0
#include "cli/values.h"

#include <cmath>
#include <random>

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

TEST(Values, ATimeThatIsTooLongForANumberIsRefused) {
  for (const char* text : {"1e308h", "1e307m", "1e305h", "2e308"}) {
    EXPECT_EQ(ReadSeconds(text), Seconds(-1)) << text;
  }
  EXPECT_EQ(ReadSeconds("1e300h"), Seconds(3600 * 1e300));
}

TEST(Values, ATimeIsReadAsItIsShown) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-6, 8);
  for (int i = 0; i < 5000; ++i) {
    const Seconds time(std::pow(10, exponent(random)));
    ASSERT_NEAR(ReadSeconds(FormatValue(time)) / time, 1, 1e-5) << FormatValue(time);
  }
}

TEST(Values, NumbersAtTheLimitsOfTheirTypesAreReadAsTheyAreShown) {
  int64_t wide = 0;
  for (const int64_t number : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    EXPECT_TRUE(ReadValue(FormatValue(number), wide).ok());
    EXPECT_EQ(wide, number);
  }
  EXPECT_FALSE(ReadValue("9223372036854775808", wide).ok());
  for (const char* text : {"+1", " 1", "1 ", "0x10", "1.0", "1e3", "--1", "-"}) {
    EXPECT_FALSE(ReadValue(text, wide).ok()) << text;
  }
  EXPECT_EQ(wide, INT64_MAX);
  double real = 0;
  for (const double number : {0.1, -1e-300, 1.7976931348623157e308, 5e-324}) {
    EXPECT_TRUE(ReadValue(FormatValue(number), real).ok());
    EXPECT_EQ(real, number);
  }
}

TEST(Values, AnOptionalValueThatIsRefusedStaysAbsent) {
  std::optional<int> number;
  EXPECT_FALSE(ReadValue("x", number).ok());
  EXPECT_FALSE(number.has_value());
  EXPECT_EQ(FormatValue(number), "");
  EXPECT_TRUE(ReadValue("0", number).ok());
  EXPECT_EQ(FormatValue(number), "0");
}

TEST(Values, RepeatedValuesAreKeptWithAllTheirCommas) {
  std::vector<std::string> values = {"first"};
  EXPECT_TRUE(ReadValue("a,b", values).ok());
  EXPECT_TRUE(ReadValue("", values).ok());
  EXPECT_EQ(values, (std::vector<std::string>{"first", "a,b", ""}));
}

}  // namespace
}  // namespace nereid::cli
