// SPDX-License-Identifier: Apache-2.0
#include "s3/location.h"

#include <gtest/gtest.h>

namespace nereid::s3 {
namespace {

void Expect(std::string_view path, std::string_view endpoint, std::string_view bucket,
            std::string_view key) {
  const auto location = ParseLocation(path);
  ASSERT_TRUE(location.ok()) << path;
  EXPECT_EQ(location->endpoint, endpoint) << path;
  EXPECT_EQ(location->bucket, bucket) << path;
  EXPECT_EQ(location->key, key) << path;
}

TEST(ALocation, IsABucketOfAmazonOrOfANamedServer) {
  Expect("s3://bucket", "", "bucket", "");
  Expect("s3://bucket/", "", "bucket", "");
  Expect("s3://bucket/path/to/models", "", "bucket", "path/to/models");
  Expect("s3://localhost:4566/demo-bucket1.0/m", "http://localhost:4566", "demo-bucket1.0", "m");
  Expect("s3://http://10.0.0.1:9000/b/m", "http://10.0.0.1:9000", "b", "m");
  Expect("s3://https://minio.example.com:443/b", "https://minio.example.com:443", "b", "");
  Expect("s3://https://minio.example.com/b/m", "https://minio.example.com", "b", "m");
}

TEST(ALocation, CountsDoubledSlashesOnce) {
  Expect("s3:////bucket//path///to/", "", "bucket", "path/to");
  Expect("s3://https:////host:1//b//m//", "https://host:1", "b", "m");
}

TEST(ALocation, NeedsABucket) {
  for (const char* path : {"s3://", "s3:///", "s3://http://host:80", "s3://http://host:80/"}) {
    EXPECT_EQ(ParseLocation(path).status().message(),
              std::string("No bucket name found in path: ") + path);
  }
}

TEST(ALocation, IsPrintedInOneForm) {
  EXPECT_EQ(ParseLocation("s3://h:1//b//m/")->ToString(), "s3://http://h:1/b/m");
  EXPECT_EQ(ParseLocation("s3://b")->ToString(), "s3://b");
}

}  // namespace
}  // namespace nereid::s3
