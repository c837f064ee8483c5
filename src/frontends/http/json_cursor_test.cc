// SPDX-License-Identifier: Apache-2.0
#include "http/json_cursor.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

// A copy without slack, so that a sanitizer sees every read beyond it.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(text.begin(), text.end()) {}
  JsonCursor cursor() const { return JsonCursor({bytes_.data(), bytes_.size()}); }

 private:
  std::vector<char> bytes_;
};

std::optional<double> Double(std::string_view text) {
  const Exact exact(text);
  JsonCursor cursor = exact.cursor();
  const auto number = cursor.Double();
  return cursor.IsAtEnd() ? number : std::nullopt;
}

std::optional<std::string> Text(std::string_view text) {
  const Exact exact(text);
  JsonCursor cursor = exact.cursor();
  std::string out;
  if (!cursor.AppendText(out) || !cursor.IsAtEnd()) return std::nullopt;
  return out;
}

bool Skips(std::string_view text) {
  const Exact exact(text);
  JsonCursor cursor = exact.cursor();
  return cursor.Skip() && cursor.IsAtEnd();
}

void ExpectSameAsStrtod(const std::string& text) {
  const auto number = Double(text);
  ASSERT_TRUE(number.has_value()) << text;
  EXPECT_EQ(std::bit_cast<uint64_t>(*number),
            std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)))
      << text;
}

TEST(JsonCursor, ReadsNumbersAsTheNearestDouble) {
  for (const char* text : {"0",
                           "1",
                           "-1",
                           "0.0",
                           "-0.0",
                           "0e5",
                           "-0e0",
                           "0.1",
                           "-0.30000000000000004",
                           "1e22",
                           "1e23",
                           "9007199254740992",
                           "9007199254740993",
                           "9007199254740993.0",
                           "123456789012345678901234567",
                           "0.00000000000000000000001",
                           "0.000000000000000000000001",
                           "1.7976931348623157e308",
                           "5e-324",
                           "2.2250738585072011e-308",
                           "1.5E+3",
                           "18446744073709551615",
                           "18446744073709551616",
                           "1234567890123456789.5",
                           "0.14285714924335480",
                           "9007199254740993.5",
                           "0.9999999999999999999",
                           "9999999999999999999",
                           "0.000012345678901234567"}) {
    ExpectSameAsStrtod(text);
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    char text[64];
    const auto any = std::bit_cast<double>(random());
    if (!std::isfinite(any) || std::abs(any) < 1e-300) continue;
    std::snprintf(text, sizeof(text), "%.*g", static_cast<int>(1 + random() % 19), any);
    if (std::isfinite(std::strtod(text, nullptr))) ExpectSameAsStrtod(text);
    std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(random() % 20),
                  static_cast<double>(random() % 1'000'000) / 999);
    ExpectSameAsStrtod(text);
  }
}

TEST(JsonCursor, ReadsAnIntegerZeroWithoutItsSign) {
  // Consistent with RapidJSON, for which "-0" is the integer 0.
  EXPECT_FALSE(std::signbit(Double("-0").value()));
  EXPECT_TRUE(std::signbit(Double("-0.0").value()));
}

TEST(JsonCursor, RefusesAZeroWithAnExponentThatRapidJsonRefuses) {
  EXPECT_EQ(Double("0e-9"), 0.0);
  EXPECT_EQ(Double("0.0e99"), 0.0);
  for (const char* text : {"0e400", "-0e999922", "0.000E+311"}) {
    EXPECT_EQ(Double(text), std::nullopt) << text;
  }
}

TEST(JsonCursor, RefusesInvalidNumbers) {
  for (const char* text :
       {"",      "-",   "+1",       "01",   "-01", ".5",   "5.",  "5.e3",  "1e",     "1e+",
        "1.5.2", "NaN", "Infinity", "-inf", "nan", "0x10", "1 2", "1e400", "1e-400", "--1"}) {
    EXPECT_EQ(Double(text), std::nullopt) << text;
  }
}

TEST(JsonCursor, ReadsIntegersUpToTheirLimits) {
  const auto unsigned_number = [](std::string_view text) {
    JsonCursor cursor(text);
    const auto number = cursor.Unsigned();
    return cursor.IsAtEnd() ? number : std::nullopt;
  };
  const auto signed_number = [](std::string_view text) {
    JsonCursor cursor(text);
    const auto number = cursor.Signed();
    return cursor.IsAtEnd() ? number : std::nullopt;
  };
  EXPECT_EQ(unsigned_number("0"), 0u);
  EXPECT_EQ(unsigned_number(" 18446744073709551615 "), UINT64_MAX);
  EXPECT_EQ(signed_number("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(signed_number("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(signed_number("-0"), 0);
  for (const char* text : {"", "-1", "01", "00", "1.0", "1e3", "18446744073709551616",
                           "99999999999999999999", "00000000000000000001", "a"}) {
    EXPECT_EQ(unsigned_number(text), std::nullopt) << text;
  }
  for (const char* text :
       {"-", "--1", "- 1", "-01", "9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(signed_number(text), std::nullopt) << text;
  }
  for (const auto& [text, is_whole] :
       {std::pair("1", true), std::pair("1,", true), std::pair("1.5", false),
        std::pair("1e5", false), std::pair("1E5", false)}) {
    JsonCursor cursor(text);
    EXPECT_TRUE(cursor.Unsigned().has_value());
    EXPECT_EQ(cursor.IsAtEndOfNumber(), is_whole) << text;
  }
}

TEST(JsonCursor, ResolvesEscapes) {
  EXPECT_EQ(Text(R"("")"), "");
  EXPECT_EQ(Text(R"( "a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(Text(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(Text(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(Text("\"\xC3\xA9\xff\""),
            "\xC3\xA9\xff");  // not validated
  for (const char* text :
       {"", "\"", "\"a", "a", R"("\x")", R"("\)", R"("\u12")", R"("\u12g4")", R"("\ud83d")",
        R"("\ud83dx")", R"("\ud83d\u0041")", R"("\ude00")", "\"\n\"", "\"\x1f\""}) {
    EXPECT_EQ(Text(text), std::nullopt) << text;
  }
}

TEST(JsonCursor, FindsTheEndOfATextWhereverItLies) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string plain(size, '\x80');
    EXPECT_EQ(Text("\"" + plain + "\""), plain);
    EXPECT_EQ(Text("\"" + plain + "\\n" + plain + "\""), plain + "\n" + plain);
    EXPECT_EQ(Text("\"" + plain + "\x01" + plain + "\""), std::nullopt);
    EXPECT_EQ(Text("\"" + plain), std::nullopt);
    const Exact exact("\"" + plain + "\"");
    JsonCursor cursor = exact.cursor();
    EXPECT_EQ(cursor.Text(), plain);
    EXPECT_TRUE(cursor.IsAtEnd());
  }
}

TEST(JsonCursor, ViewsOnlyTextsWithoutEscapes) {
  JsonCursor cursor(R"("a\n")");
  EXPECT_EQ(cursor.Text(), std::nullopt);
}

TEST(JsonCursor, FindsMembersWhateverTheirSpacing) {
  for (const char* text : {R"({"a":1,"bc":2,"x":3})", " { \"a\" : 1 ,\n\t\"bc\": 2 , \"x\" :3 } ",
                           R"({"a": 1, "bc": 2, "x": 3})"}) {
    const Exact exact(text);
    JsonCursor cursor = exact.cursor();
    std::string seen;
    EXPECT_TRUE((cursor.Object<"a", "bc">([&](int member, std::string_view key) {
      seen += std::to_string(member) + (member < 0 ? std::string(key) : "") + ":";
      const auto number = cursor.Unsigned();
      seen += std::to_string(number.value_or(0)) + " ";
      return number.has_value();
    }))) << text;
    EXPECT_TRUE(cursor.IsAtEnd());
    EXPECT_EQ(seen, "0:1 1:2 -1x:3 ") << text;
  }
}

TEST(JsonCursor, PassesOverAnyValue) {
  for (const char* text : {"{}", "[]", "[ ]", "{ }", "null", "true", "false", "\"a\"", "-1.5e3",
                           R"({"a":[1,{"b":null},[[]]],"c":{"d":true}})"}) {
    EXPECT_TRUE(Skips(text)) << text;
  }
  for (const char* text :
       {"",     "{",     "[",     "]",         "{]",        "[}",          "[1,]",
        "[,1]", "[1 2]", "{,}",   R"({"a"})",  R"({"a":})", R"({"a":1,})", R"({1:1})",
        "nul",  "tru",   "nulll", "truefalse", "[1",        R"({"a":1)"}) {
    EXPECT_FALSE(Skips(text)) << text;
  }
  EXPECT_TRUE(Skips(std::string(99, '[') + std::string(99, ']')));
  EXPECT_FALSE(Skips(std::string(101, '[') + std::string(101, ']')));
}

}  // namespace
}  // namespace nereid::http
