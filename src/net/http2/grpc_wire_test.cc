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
  EXPECT_EQ(PercentEncode("plain ~!"), "plain ~!");
  EXPECT_EQ(PercentEncode("100%\n\xc3\xa4"), "100%25%0A%C3%A4");
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
