// SPDX-License-Identifier: Apache-2.0
#include "s3/list_page.h"

#include <gtest/gtest.h>

namespace nereid::s3 {
namespace {

TEST(AListOfObjects, IsReadWithEncodedKeys) {
  const auto page = ParseListPage(R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextContinuationToken>a&amp;b</NextContinuationToken>
<Contents><Key>m/1/a%20b+c%2Bd.onnx</Key><LastModified>2026-01-31T12:34:56.250Z</LastModified>
<ETag>&quot;0123&quot;</ETag><Size>18446744073709551615</Size></Contents></ListBucketResult>)");
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].key, "m/1/a b c+d.onnx");
  EXPECT_EQ(page->objects[0].etag, "0123");
  EXPECT_EQ(page->objects[0].md5, "");  // the object was uploaded in several parts
  EXPECT_EQ(page->objects[0].size, UINT64_MAX);
  EXPECT_EQ(page->objects[0].modified_ns, 1769862896'250'000'000);
  EXPECT_EQ(page->next, "a&b");
}

TEST(AListOfObjects, IsRefusedWhereItIsBroken) {
  for (const char* xml :
       {"", "<x/>", "<ListBucketResult><Contents>", "no XML",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size>"
        "<LastModified>2026-01-31T12:34:56Z</LastModified></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>k</Key><Size>1</Size>"
        "<LastModified>yesterday</LastModified></Contents></ListBucketResult>"}) {
    EXPECT_FALSE(ParseListPage(xml).ok()) << xml;
  }
}

TEST(AnErrorOfS3, HasCodeAndMessage) {
  const ErrorBody error =
      ParseErrorBody("<Error><Code>NoSuchBucket</Code><Message>Not there</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchBucket");
  EXPECT_EQ(error.message, "Not there");
  EXPECT_EQ(ParseErrorBody("<html>").code, "");
}

}  // namespace
}  // namespace nereid::s3
