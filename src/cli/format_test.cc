// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

// The time that a text stands for.
double NanosecondsOf(const std::string& text) {
  const double number = std::stod(text);
  if (text.ends_with(" ns")) return number;
  if (text.ends_with(" us")) return number * 1e3;
  return number * (text.ends_with(" ms") ? 1e6 : 1e9);
}

TEST(FormatNanoseconds, UnitsChangeWhereTheDigitsDo) {
  EXPECT_EQ(FormatNanoseconds(0), "0 ns");
  EXPECT_EQ(FormatNanoseconds(999.4), "999 ns");
  EXPECT_EQ(FormatNanoseconds(999.6), "1.00 us");
  EXPECT_EQ(FormatNanoseconds(9994), "9.99 us");
  EXPECT_EQ(FormatNanoseconds(9996), "10.0 us");
  EXPECT_EQ(FormatNanoseconds(99'960), "100 us");
  EXPECT_EQ(FormatNanoseconds(999'600), "1.00 ms");
  EXPECT_EQ(FormatNanoseconds(12.34e6), "12.3 ms");
  EXPECT_EQ(FormatNanoseconds(999.6e6), "1.00 s");
  EXPECT_EQ(FormatNanoseconds(3600e9), "3600 s");
}

TEST(FormatNanoseconds, AnyTimeHasThreeDigitsAndIsWithinHalfAPercent) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(2, 11.9);
  for (int i = 0; i < 20000; ++i) {
    const double ns = std::pow(10, exponent(random));
    const std::string text = FormatNanoseconds(ns);
    ASSERT_NEAR(NanosecondsOf(text) / ns, 1, 0.00501) << text;
    ASSERT_EQ(std::ranges::count_if(text, [](unsigned char c) { return std::isdigit(c) != 0; }), 3)
        << text;
  }
}

TEST(FormatRate, HasThreeDigitsOrAllBeforeThePoint) {
  EXPECT_EQ(FormatRate(0), "0");
  EXPECT_EQ(FormatRate(0.25), "0.25");
  EXPECT_EQ(FormatRate(9.996), "10.0");
  EXPECT_EQ(FormatRate(12.5), "12.5");
  EXPECT_EQ(FormatRate(99.96), "100");
  EXPECT_EQ(FormatRate(4321.4), "4321");
}

TEST(FormatRate, ASmallRateIsNotShownAsNone) {
  EXPECT_EQ(FormatRate(0.0123), "0.0123");
  EXPECT_EQ(FormatRate(0.001), "0.001");
  EXPECT_EQ(FormatRate(0.1), "0.10");
}

TEST(Counted, OneIsNotPlural) {
  EXPECT_EQ(Counted(0, "model"), "0 models");
  EXPECT_EQ(Counted(1, "model"), "1 model");
  EXPECT_EQ(Counted(2, "model"), "2 models");
}

TEST(FormatAge, AUnitBeginsAtTwo) {
  EXPECT_EQ(FormatAge(0), "0s");
  EXPECT_EQ(FormatAge(119), "119s");
  EXPECT_EQ(FormatAge(120), "2m");
  EXPECT_EQ(FormatAge(7199), "119m");
  EXPECT_EQ(FormatAge(7200), "2h");
  EXPECT_EQ(FormatAge(172'799), "47h");
  EXPECT_EQ(FormatAge(172'800), "2d");
}

}  // namespace
}  // namespace nereid::cli
