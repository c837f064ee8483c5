// SPDX-License-Identifier: Apache-2.0
#include "cli/printable.h"

#include <random>

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

TEST(Printable, GoodTextStaysAsItIs) {
  EXPECT_EQ(Printable("añ€😀"), "añ€😀");
  EXPECT_EQ(ValidUtf8("a\n\x1b[31m"), "a\n\x1b[31m");
}

TEST(Printable, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(Printable("a\nb\tc"), "a b c");
  EXPECT_EQ(Printable("\x1b[2J\x7f"), "\uFFFD[2J\uFFFD");
  EXPECT_EQ(Printable("\xC2\x9B[2J"), "\uFFFD[2J");
}

TEST(Printable, BytesThatAreNoCharactersAreReplacedOneByOne) {
  EXPECT_EQ(ValidUtf8("\xFFx\xC3"), "\uFFFDx\uFFFD");
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(ValidUtf8("\xE2\x82"), "\uFFFD\uFFFD");
}

// The character in UTF-8, also where it is none: surrogates, and beyond the last one.
std::string Encoded(uint32_t code) {
  const auto byte = [](uint32_t bits) { return std::string(1, static_cast<char>(bits)); };
  const auto more = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xC0 | code >> 6) + more(0);
  if (code < 0x10000) return byte(0xE0 | code >> 12) + more(6) + more(0);
  return byte(0xF0 | code >> 18) + more(12) + more(6) + more(0);
}

TEST(Printable, ExactlyTheCharactersOfUnicodeStayAndNoControlCharacters) {
  for (uint32_t code = 0; code < 0x120000; ++code) {
    const std::string text = Encoded(code);
    const bool is_character = code < 0xD800 || (code > 0xDFFF && code < 0x110000);
    ASSERT_EQ(ValidUtf8(text) == text, is_character) << code;
    const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
    ASSERT_EQ(Printable(text) == text, is_character && !is_control) << code;
  }
}

TEST(Printable, WhatIsReturnedNeedsNoFurtherChange) {
  std::mt19937 random(1);
  constexpr std::string_view kBytes =
      "a\n\x1b\x7f\xC2\x9B\xE2\x82\xAC\xF0\x9F\x98\x80\xED\xA0\xFF\xF4\x90";
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = kBytes[random() % kBytes.size()];
    const std::string valid = ValidUtf8(text);
    ASSERT_EQ(ValidUtf8(valid), valid);
    const std::string printable = Printable(text);
    ASSERT_EQ(Printable(printable), printable);
    ASSERT_EQ(ValidUtf8(printable), printable);
    // What is around a text does not change, whatever is in it.
    ASSERT_EQ(ValidUtf8("x" + text + "x"), "x" + valid + "x");
  }
}

}  // namespace
}  // namespace nereid::cli
