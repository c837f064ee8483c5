// SPDX-License-Identifier: Apache-2.0
#include "azure/list_page.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace nereid::azure {
namespace {

TEST(AListOfBlobs, IsReadWithTheirChecksums) {
  const auto page = ParseListPage(
      "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>"
      R"(<EnumerationResults ServiceEndpoint="https://a.blob.core.windows.net/" ContainerName="c">
<Prefix>m</Prefix><Blobs>
<Blob><Name>m/1/a &amp; b.onnx</Name><Properties><Last-Modified>Sat, 31 Jan 2026 12:34:56 GMT
</Last-Modified></Properties></Blob></Blobs></EnumerationResults>)");
  EXPECT_FALSE(page.ok());  // a line end in the time
  const auto whole = ParseListPage(
      R"(<EnumerationResults><Blobs><Blob><Name>m/1/a &amp; b.onnx</Name><Properties>
<Last-Modified>Sat, 31 Jan 2026 12:34:56 GMT</Last-Modified><Etag>0x8DE</Etag>
<Content-Length>18446744073709551615</Content-Length>
<Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5></Properties></Blob></Blobs>
<NextMarker>2!a&amp;b</NextMarker></EnumerationResults>)");
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  ASSERT_EQ(whole->objects.size(), 1u);
  EXPECT_EQ(whole->objects[0].key, "m/1/a & b.onnx");
  EXPECT_EQ(whole->objects[0].etag, "0x8DE");
  EXPECT_EQ(whole->objects[0].md5, "5eb63bbbe01eeed093cb22bb8f5acdc3");
  EXPECT_EQ(whole->objects[0].size, UINT64_MAX);
  EXPECT_EQ(whole->objects[0].modified_ns, 1769862896'000'000'000);
  EXPECT_EQ(whole->next, "2!a&b");
}

std::string BlobWith(const std::string& name, const std::string& more = "",
                     const std::string& etag = "e") {
  return fmt::format(
      "<EnumerationResults><Blobs><Blob>{}<Properties><Last-Modified>Sat, 31 Jan 2026 12:34:56 GMT"
      "</Last-Modified><Etag>{}</Etag><Content-Length>0</Content-Length></Properties>{}</Blob>"
      "</Blobs><NextMarker/></EnumerationResults>",
      name, etag, more);
}

TEST(AListOfBlobs, MarksTheFoldersOfAHierarchicalNamespace) {
  const std::string metadata = "<Metadata><Hdi_isfolder>true</Hdi_isfolder></Metadata>";
  EXPECT_EQ(ParseListPage(BlobWith("<Name>m/1</Name>", metadata))->objects[0].key, "m/1/");
  EXPECT_EQ(ParseListPage(BlobWith("<Name>m/1</Name>"))->objects[0].key, "m/1");
}

TEST(AListOfBlobs, HasNamesThatXmlCannotHave) {
  EXPECT_EQ(ParseListPage(BlobWith("<Name Encoded=\"true\">a%EF%BF%BF</Name>"))->objects[0].key,
            "a\xEF\xBF\xBF");
  EXPECT_EQ(ParseListPage(BlobWith("<Name>a%20b</Name>"))->objects[0].key, "a%20b");
  EXPECT_EQ(ParseListPage(BlobWith("<Name> a </Name>"))->objects[0].key, " a ");
}

TEST(AListOfBlobs, IsRefusedWhereItIsBroken) {
  for (const std::string& xml :
       {std::string(), std::string("<x/>"), std::string("<EnumerationResults><Blobs><Blob>"),
        std::string("no XML"), BlobWith(""), BlobWith("<Name>a</Name>", "", ""),
        BlobWith("<Name>a</Name>", "", "a\"b")}) {
    EXPECT_FALSE(ParseListPage(xml).ok()) << xml;
  }
}

TEST(AnErrorOfAzure, HasItsCodeAndItsFirstLine) {
  const ErrorBody error = ParseErrorBody(
      "\xEF\xBB\xBF<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code><Message>Server "
      "failed.\nRequestId:1\nTime:2</Message><AuthenticationErrorDetail>secret"
      "</AuthenticationErrorDetail></Error>");
  EXPECT_EQ(error.code, "AuthenticationFailed");
  EXPECT_EQ(error.message, "Server failed.");
  EXPECT_EQ(ParseErrorBody("<html>").code, "");
}

}  // namespace
}  // namespace nereid::azure
