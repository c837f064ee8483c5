// SPDX-License-Identifier: Apache-2.0
#include "s3/signature.h"

#include <gtest/gtest.h>

namespace nereid::s3 {
namespace {

constexpr std::time_t kNow = 1369353600;  // 2013-05-24 00:00:00 UTC

// The keys and requests are those of Amazon's documentation of the signature.
const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

std::string SignatureOf(const UnsignedRequest& request) {
  const std::string header =
      SignedHeaders(request, kExample, "us-east-1", kNow).at("authorization");
  return header.substr(header.find("Signature=") + 10);
}

TEST(ASignature, IsThatOfTheDocumentationForAnObject) {
  EXPECT_EQ(SignatureOf({.host = "examplebucket.s3.amazonaws.com",
                         .path = "/test.txt",
                         .query = "",
                         .headers = {{"range", "bytes=0-9"}}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(ASignature, IsThatOfTheDocumentationForAList) {
  EXPECT_EQ(SignatureOf({.host = "examplebucket.s3.amazonaws.com",
                         .path = "/",
                         .query = "max-keys=2&prefix=J",
                         .headers = {}}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(ASignature, IsThatOfTheDocumentationForABody) {
  EXPECT_EQ(SignatureOf({.method = "PUT",
                         .host = "examplebucket.s3.amazonaws.com",
                         .path = "/test%24file.text",
                         .query = "",
                         .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                         .body = "Welcome to Amazon S3."}),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(ASignature, CoversTheSessionToken) {
  Credentials temporary = kExample;
  temporary.session_token = "token";
  const auto headers = SignedHeaders({.host = "h", .path = "/"}, temporary, "eu-west-1", kNow);
  EXPECT_EQ(headers.at("x-amz-security-token"), "token");
  EXPECT_NE(headers.at("authorization").find("x-amz-date;x-amz-security-token"), std::string::npos);
}

TEST(ASignature, IsLeftOutWithoutCredentials) {
  const auto headers = SignedHeaders({.host = "h", .path = "/"}, {}, "eu-west-1", kNow);
  EXPECT_TRUE(headers.empty());
}

}  // namespace
}  // namespace nereid::s3
