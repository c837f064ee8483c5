// SPDX-License-Identifier: Apache-2.0
#include "base/text_encodings.h"

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

TEST(Hex, HasTwoLowerCaseDigitsForEachByte) {
  EXPECT_EQ(ToHex(std::string_view("\x00\x0f\xa5\xff", 4)), "000fa5ff");
  EXPECT_EQ(ToHex(""), "");
}

TEST(Base64Url, GivesBackWhatWasEncoded) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const std::string text = EncodeBase64Url(bytes);
    EXPECT_EQ(text.find_first_of("+/="), std::string::npos);
    EXPECT_EQ(DecodeBase64Url(text), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(EncodeBase64Url("\xfb\xff"), "-_8");
}

TEST(Base64Url, AcceptsOneSpellingOnly) {
  for (const char* const text : {"a", "-_8=", "-_9", "+/8", "-_ 8", "-_8\n", "AAAAA"}) {
    EXPECT_FALSE(DecodeBase64Url(text)) << text;
  }
  EXPECT_FALSE(DecodeBase64Url(std::string_view("AA\0A", 4)));
}

}  // namespace
}  // namespace nereid::base
