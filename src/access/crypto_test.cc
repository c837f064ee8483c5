// SPDX-License-Identifier: Apache-2.0
#include "access/crypto.h"

#include <set>

#include <gtest/gtest.h>

#include "base/text_encodings.h"

namespace nereid::access {
namespace {

TEST(Digests, AreThoseOfTheStandard) {
  EXPECT_EQ(ToHex(HashOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(DigestFromHex(ToHex(HashOf("x"))), HashOf("x"));
  EXPECT_FALSE(DigestFromHex(""));
  EXPECT_FALSE(DigestFromHex(std::string(63, 'a')));
  EXPECT_FALSE(DigestFromHex(std::string(64, 'g')));
  EXPECT_TRUE(DigestFromHex(std::string(64, 'F')));
}

TEST(Keys, AreLongAndNeverTheSame) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const base::Result<std::string> key = MakeKey();
    ASSERT_TRUE(key.ok());
    EXPECT_TRUE(key->starts_with("nrd_"));
    EXPECT_EQ(base::DecodeBase64Url(key->substr(4))->size(), 32u);
    keys.insert(*key);
  }
  EXPECT_EQ(keys.size(), 100u);
}

TEST(Comparison, SeesEveryDifference) {
  EXPECT_TRUE(IsSame("", ""));
  EXPECT_TRUE(IsSame("abc", "abc"));
  EXPECT_FALSE(IsSame("abc", "abd"));
  EXPECT_FALSE(IsSame("abc", "ab"));
  EXPECT_FALSE(IsSame("", "a"));
  for (size_t size = 1; size < 40; ++size) {
    const std::string text(size, 'x');
    EXPECT_TRUE(IsSame(text, std::string(size, 'x')));
    for (size_t i = 0; i < size; ++i) {
      std::string other = text;
      other[i] ^= 1;
      EXPECT_FALSE(IsSame(text, other)) << i << " of " << size;
    }
  }
}

}  // namespace
}  // namespace nereid::access
