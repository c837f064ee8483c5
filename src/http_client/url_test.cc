// SPDX-License-Identifier: Apache-2.0
#include "http_client/url.h"

#include <gtest/gtest.h>

namespace nereid::http_client {
namespace {

TEST(AUrl, IsReadWithAndWithoutItsParts) {
  const auto url = ParseUrl("localhost:10000/v1/traces?a=b");
  ASSERT_TRUE(url.ok());
  EXPECT_FALSE(url->is_tls);
  EXPECT_EQ(url->host, "localhost");
  EXPECT_EQ(url->port, "10000");
  EXPECT_EQ(url->path, "/v1/traces?a=b");
  EXPECT_EQ(ParseUrl("http://h")->port, "80");
  EXPECT_EQ(ParseUrl("http://h")->path, "/");
  EXPECT_EQ(ParseUrl("http://[::1]:9/x")->host, "::1");
  EXPECT_TRUE(ParseUrl("https://h/")->is_tls);
  EXPECT_EQ(ParseUrl("https://h/")->port, "443");
}

TEST(AUrl, IsPrintedWithAllItsParts) {
  EXPECT_EQ(ParseUrl("h/x")->ToString(), "http://h:80/x");
  EXPECT_EQ(ParseUrl("https://h")->ToString(), "https://h:443/");
  EXPECT_EQ(ParseUrl("[::1]:9/x")->ToString(), "http://[::1]:9/x");
}

TEST(AUrl, IsRefusedWithoutAHostOrWithOtherThanANumberAsPort) {
  for (const char* text : {"", "http://", "https://", ":80/x", "h:x/", "h:/", "h/a\r\nb", "h /"}) {
    EXPECT_FALSE(ParseUrl(text).ok()) << text;
  }
  EXPECT_EQ(ParseUrl("h:x/").status().message(),
            "expected http[s]://<host>:<port>/<path>, got: h:x/");
}

TEST(PercentEncoding, IsThatOfSignatures) {
  EXPECT_EQ(PercentEncode("a b+c/d~e%f\xC3\xA9", true), "a%20b%2Bc/d~e%25f%C3%A9");
  EXPECT_EQ(PercentEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(PercentDecode("a%20b%2bc%zz%4"), "a b+c%zz%4");
}

}  // namespace
}  // namespace nereid::http_client
