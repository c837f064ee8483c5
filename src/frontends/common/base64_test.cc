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

TEST(Base64, EncodesWithPadding) {
  const auto encode = [](std::string_view bytes) {
    std::string out = ">";
    AppendBase64(out, bytes);
    return out;
  };
  EXPECT_EQ(encode(""), ">");
  EXPECT_EQ(encode("f"), ">Zg==");
  EXPECT_EQ(encode("fo"), ">Zm8=");
  EXPECT_EQ(encode("foo"), ">Zm9v");
  EXPECT_EQ(encode("\xff\xfe\xfd\x01"), ">//79AQ==");
}

}  // namespace
}  // namespace nereid::common
