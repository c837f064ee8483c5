// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nereid::base {
namespace {

std::string Print(double value) {
  std::string text;
  AppendJsonDouble(text, value);
  return text;
}

TEST(JsonText, PrintsDoublesAsTritonDoes) {
  // These spellings were seen in responses of the reference server.
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

// Returns the significant digits of a number: "125" for "1.250e-7".
std::string SignificantDigits(std::string_view number) {
  std::string digits;
  for (const char c : number.substr(0, number.find('e'))) {
    if (c != '.' && (c != '0' || !digits.empty())) digits += c;
  }
  return digits.substr(0, digits.find_last_not_of('0') + 1);
}

// By definition, to_chars prints the shortest digits and, of those, the closest.
void ExpectShortest(double value) {
  char buffer[40];
  const char* const end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string text = Print(value);
  EXPECT_EQ(SignificantDigits(text), SignificantDigits(std::string_view(buffer, end)));
  EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
}

TEST(JsonText, PrintsTheDigitsThatToCharsFinds) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200'000; ++i) {
    const auto any = std::bit_cast<double>(random() >> 1);
    if (std::isfinite(any) && any != 0) ExpectShortest(any);
    const auto single = std::bit_cast<float>(static_cast<uint32_t>(random()) >> 1);
    if (std::isfinite(single) && single != 0) ExpectShortest(single);
    ExpectShortest(static_cast<double>(random() % 100'000'000 + 1) / 1000);
  }
}

TEST(JsonText, PrintsShortNumbersAsOthers) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 100'000; ++i) {
    const auto thousandths = random() >> (10 + i % 50);
    double value = static_cast<double>(thousandths) / 1000;
    if (i % 3 == 0) value = std::nextafter(value, 1e308);
    if (value < 1e-6 || value >= 1e15) continue;
    char expected[40];
    char* end = std::to_chars(expected, expected + 40, value, std::chars_format::fixed).ptr;
    std::string text(expected, static_cast<size_t>(end - expected));
    if (text.find('.') == text.npos) text += ".0";
    EXPECT_EQ(Print(value), text);
  }
}

TEST(JsonText, PrintsTheShortestNextToPowersOfTwoAndTen) {
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    const double power = std::ldexp(1.0, exponent);
    ExpectShortest(power);
    ExpectShortest(std::nextafter(power, 0) > 0 ? std::nextafter(power, 0) : power);
    ExpectShortest(std::nextafter(power, 1e308));
  }
  for (int exponent = -323; exponent <= 308; ++exponent) {
    const double power = std::strtod(fmt::format("1e{}", exponent).c_str(), nullptr);
    ExpectShortest(power);
    ExpectShortest(std::nextafter(power, 1e308));
  }
  ExpectShortest(std::numeric_limits<double>::max());
  ExpectShortest(std::numeric_limits<double>::denorm_min());
  ExpectShortest(9007199254740993.0);
}

TEST(JsonText, EscapesOnlyWhatJsonDemands) {
  std::string text;
  AppendJsonString(text, std::string_view("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f\0\xC3\xA9\xFF", 18));
  EXPECT_EQ(text, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\\u0000\xC3\xA9\xFF\"");
  EXPECT_EQ(JsonError("it's \"bad\""), "{\"error\":\"it's \\\"bad\\\"\"}");
}

TEST(JsonText, EscapesTheSameBytesWhereverTheyAreInAText) {
  const std::string around = "0123456789abcdef\xC3\xA9";
  for (int byte = 0; byte < 256; ++byte) {
    std::string alone;
    AppendJsonString(alone, std::string(1, static_cast<char>(byte)));
    const std::string escaped = alone.substr(1, alone.size() - 2);
    for (size_t at = 0; at <= around.size(); ++at) {
      std::string text = around;
      text.insert(at, 2, static_cast<char>(byte));
      std::string expected = around;
      expected.insert(at, escaped + escaped);
      std::string written;
      AppendJsonString(written, text);
      ASSERT_EQ(written, '"' + expected + '"') << byte << " at " << at;
    }
  }
}

}  // namespace
}  // namespace nereid::base
