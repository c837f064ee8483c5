// SPDX-License-Identifier: Apache-2.0
#include "common/base64.h"

#include <gtest/gtest.h>

namespace nereid::common {
namespace {

TEST(Base64, IsDecoded) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("QQ=="), "A");
  EXPECT_EQ(DecodeBase64("QUI="), "AB");
  EXPECT_EQ(DecodeBase64("QUJD"), "ABC");
  EXPECT_EQ(DecodeBase64("AP/+/w=="), std::string("\0\xFF\xFE\xFF", 4));
}

TEST(Base64, IsDecodedWithWhateverLiesBetween) {
  EXPECT_EQ(DecodeBase64("QU\r\nJD"), "ABC");
  EXPECT_EQ(DecodeBase64("QQ"), "A");
  EXPECT_EQ(DecodeBase64("Q"), "");
  EXPECT_EQ(DecodeBase64("===="), "");
  EXPECT_EQ(DecodeBase64("QUJD\xFF"
                         "QUJD"),
            "ABCABC");
}

}  // namespace
}  // namespace nereid::common
