// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <cstring>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

std::string Print(double value) {
  std::string text;
  AppendJsonDouble(text, value);
  return text;
}

TEST(JsonText, PrintsDoublesAsTritonDoes) {
  // Seen in replies of the reference server.
  EXPECT_EQ(Print(0), "0.0");
  EXPECT_EQ(Print(-0.0), "-0.0");
  EXPECT_EQ(Print(1), "1.0");
  EXPECT_EQ(Print(-1), "-1.0");
  EXPECT_EQ(Print(0.1), "0.1");
  EXPECT_EQ(Print(1e-7), "1e-7");
  EXPECT_EQ(Print(1e-6), "0.000001");
  EXPECT_EQ(Print(1e-5), "0.00001");
  EXPECT_EQ(Print(0.000123), "0.000123");
  EXPECT_EQ(Print(123456789), "123456789.0");
  EXPECT_EQ(Print(1e20), "100000000000000000000.0");
  EXPECT_EQ(Print(1e21), "1e21");
  EXPECT_EQ(Print(1e22), "1e22");
  EXPECT_EQ(Print(1.5e300), "1.5e300");
  EXPECT_EQ(Print(5e-324), "5e-324");
  EXPECT_EQ(Print(1.7976931348623157e308), "1.7976931348623157e308");
  EXPECT_EQ(Print(3.141592653589793), "3.141592653589793");
  EXPECT_EQ(Print(100), "100.0");
  EXPECT_EQ(Print(1234.5678), "1234.5678");
  EXPECT_EQ(Print(9007199254740992), "9007199254740992.0");
  EXPECT_EQ(Print(1e-300), "1e-300");
  EXPECT_EQ(Print(std::nan("")), "NaN");
  EXPECT_EQ(Print(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(Print(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(JsonText, WidensFloatsBeforePrinting) {
  EXPECT_EQ(Print(0.1f), "0.10000000149011612");
  EXPECT_EQ(Print(1e-45f), "1.401298464324817e-45");
  EXPECT_EQ(Print(1.0f / 3), "0.3333333432674408");
  EXPECT_EQ(Print(16777216.0f), "16777216.0");
  EXPECT_EQ(Print(1e10f), "10000000000.0");
}

TEST(JsonText, PrintsDoublesThatReadBackAsThemselves) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const std::string text = Print(value);
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    EXPECT_NE(text.find_first_of(".e"), text.npos) << text;
  }
}

TEST(JsonText, EscapesOnlyWhatJsonDemands) {
  std::string text;
  AppendJsonString(text, std::string_view("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f\0\xC3\xA9\xFF", 18));
  EXPECT_EQ(text,
            "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\\u0000\xC3\xA9\xFF\"");
  EXPECT_EQ(JsonError("it's \"bad\""), "{\"error\":\"it's \\\"bad\\\"\"}");
}

}  // namespace
}  // namespace nereid::base
