// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_wire.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

TEST(GrpcWire, ReadsTimeouts) {
  using namespace std::chrono_literals;
  EXPECT_EQ(ParseGrpcTimeout("1S"), 1s);
  EXPECT_EQ(ParseGrpcTimeout("99999999n"), 99999999ns);
  EXPECT_EQ(ParseGrpcTimeout("2M"), 2min);
  EXPECT_EQ(ParseGrpcTimeout("15u"), 15us);
  EXPECT_TRUE(ParseGrpcTimeout("99999999H").has_value());
  for (const char* bad : {"", "S", "1", "123456789S", "-1S", "1x", "1 S"}) {
    EXPECT_FALSE(ParseGrpcTimeout(bad).has_value()) << bad;
  }
}

TEST(GrpcWire, EncodesAllButPrintableAscii) {
  EXPECT_EQ(PercentEncode("plain ~!", 100), "plain ~!");
  EXPECT_EQ(PercentEncode("100%\n\xc3\xa4", 100), "100%25%0A%C3%A4");
}

TEST(GrpcWire, EncodesNoMoreThanThereIsRoomForAndOnlyWholeCharacters) {
  EXPECT_EQ(PercentEncode("plain", 5), "plain");
  EXPECT_EQ(PercentEncode("plain", 4), "plai");
  EXPECT_EQ(PercentEncode("plain", 0), "");
  EXPECT_EQ(PercentEncode("a%b", 4), "a%25");
  EXPECT_EQ(PercentEncode("a%b", 3), "a");
  const std::string_view text = "a\xc3\xa4\xf0\x9f\x98\x80z";  // characters of 1, 2, 4 and 1 byte
  EXPECT_EQ(PercentEncode(text, 20), "a%C3%A4%F0%9F%98%80z");
  EXPECT_EQ(PercentEncode(text, 19), "a%C3%A4%F0%9F%98%80");
  for (size_t room = 7; room < 19; ++room) EXPECT_EQ(PercentEncode(text, room), "a%C3%A4") << room;
  for (size_t room = 1; room < 7; ++room) EXPECT_EQ(PercentEncode(text, room), "a") << room;
}

TEST(GrpcWire, CutsWhatIsNotUtf8Anywhere) {
  const std::string text(100, '\x80');
  EXPECT_GE(PercentEncode(text, 150).size(), 150u - 12);
  EXPECT_LE(PercentEncode(text, 150).size(), 150u);
}

TEST(GrpcWire, RecognisesContentTypesOfGrpc) {
  for (const char* good : {"application/grpc", "application/grpc+proto", "application/grpc;x"}) {
    EXPECT_TRUE(IsGrpcContentType(good)) << good;
  }
  for (const char* bad : {"", "application/grp", "application/grpcweb", "text/html"}) {
    EXPECT_FALSE(IsGrpcContentType(bad)) << bad;
  }
}

TEST(GrpcWire, FindsWordsInLists) {
  EXPECT_TRUE(ListContains("identity, deflate ,gzip", "deflate"));
  EXPECT_TRUE(ListContains("gzip", "gzip"));
  EXPECT_FALSE(ListContains("gzips, xgzip", "gzip"));
  EXPECT_FALSE(ListContains("", "gzip"));
}

}  // namespace
}  // namespace nereid::http2
