// SPDX-License-Identifier: Apache-2.0
#include "gcs/list_page.h"

#include <gtest/gtest.h>

namespace nereid::gcs {
namespace {

TEST(AListOfObjects, HasGenerationsAndChecksums) {
  const auto page = ParseListPage(R"({"kind": "storage#objects", "nextPageToken": "a/b=",
      "items": [{"name": "m/1/a b.onnx", "generation": "1769862896250000", "size": "11",
                 "md5Hash": "XrY7u+Ae7tCTyyK7j1rNww==", "updated": "2026-01-31T12:34:56.250Z"},
                {"name": "m/2/", "generation": "2", "size": "0", "crc32c": "AAAAAA==",
                 "updated": "2026-01-31T12:34:56.250Z"}]})");
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "m/1/a b.onnx");
  EXPECT_EQ(page->objects[0].etag, "1769862896250000");
  EXPECT_EQ(page->objects[0].size, 11u);
  EXPECT_EQ(page->objects[0].md5, "5eb63bbbe01eeed093cb22bb8f5acdc3");
  EXPECT_EQ(page->objects[0].modified_ns, 1769862896'250'000'000);
  EXPECT_EQ(page->objects[1].md5, "");  // it was composed of others
  EXPECT_EQ(page->next, "a/b=");
}

TEST(AListOfObjects, MayBeEmpty) {
  EXPECT_TRUE(ParseListPage("{}")->objects.empty());
  EXPECT_TRUE(ParseListPage(R"({"items": [], "prefixes": []})")->objects.empty());
}

TEST(AListOfObjects, IsRefusedWhereItIsBroken) {
  const std::string item =
      R"({"name": "n", "generation": "1", "size": "1", "updated": "2026-01-31T12:34:56Z"})";
  ASSERT_TRUE(ParseListPage("{\"items\": [" + item + "]}").ok());
  for (const auto& [part, other] :
       std::map<std::string, std::string>{{"\"n\"", "\"\""},
                                          {"\"n\"", "3"},
                                          {"\"generation\": \"1\"", "\"generation\": \"1&x=2\""},
                                          {"\"generation\": \"1\"", "\"generation\": \"\""},
                                          {"\"size\": \"1\"", "\"size\": \"-1\""},
                                          {"\"size\": \"1\"", "\"size\": \"99999999999999999999\""},
                                          {"2026-01-31T12:34:56Z", "yesterday"}}) {
    std::string broken = item;
    broken.replace(broken.find(part), part.size(), other);
    EXPECT_FALSE(ParseListPage("{\"items\": [" + broken + "]}").ok()) << broken;
  }
  for (const char* json : {"", "[]", "{", "no JSON", "{\"items\": 3}", "{\"items\": [3]}"}) {
    EXPECT_FALSE(ParseListPage(json).ok()) << json;
  }
}

}  // namespace
}  // namespace nereid::gcs
