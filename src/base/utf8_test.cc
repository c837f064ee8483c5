// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

TEST(IsValidUtf8, IsWhatRfc3629Allows) {
  for (const std::string_view good :
       {"", "plain text of more than eight bytes", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
        "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "12345678\xc3\xa4"}) {
    EXPECT_TRUE(IsValidUtf8(good)) << testing::PrintToString(good);
  }
  for (const std::string_view bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe2\x82", "\xed\xa0\x80",
        "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "12345678\xc3"}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << testing::PrintToString(bad);
  }
}

// Characters of every length, whole and cut off, at every offset from the words of eight bytes.
TEST(IsValidUtf8, AsksNotWhereACharacterLies) {
  for (size_t before = 0; before <= 17; ++before) {
    for (const std::string_view character : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
      const std::string text = std::string(before, 'x') + std::string(character);
      EXPECT_TRUE(IsValidUtf8(text + std::string(9, 'y'))) << testing::PrintToString(text);
      for (size_t size = before + 1; size < text.size(); ++size) {
        EXPECT_FALSE(IsValidUtf8(text.substr(0, size))) << testing::PrintToString(text);
        EXPECT_FALSE(IsValidUtf8(text.substr(0, size) + std::string(9, 'y')));
      }
    }
  }
}

}  // namespace
}  // namespace nereid::base
