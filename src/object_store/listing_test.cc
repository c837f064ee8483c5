// SPDX-License-Identifier: Apache-2.0
#include "object_store/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::object_store {
namespace {

using testing::ElementsAre;

Object File(const std::string& key, const std::string& etag = "e", int64_t modified_ns = 100) {
  return {key, etag, 1, modified_ns};
}

std::vector<std::string> Names(const Listing& listing, std::string_view folder) {
  std::vector<std::string> names;
  const Listing::Node* const node = listing.Find(folder);
  if (node == nullptr) return {"nothing"};
  for (const auto& entry : node->children)
    names.push_back(entry.name + (entry.is_folder ? "/" : ""));
  return names;
}

TEST(AListing, HasFilesAndFolders) {
  const Listing listing("r/", {File("r/m/1/model.onnx"), File("r/m/config.pbtxt"), File("r/n/2/")},
                        nullptr);
  EXPECT_THAT(Names(listing, "r"), ElementsAre("m/", "n/"));
  EXPECT_THAT(Names(listing, "r/m"), ElementsAre("1/", "config.pbtxt"));
  EXPECT_THAT(Names(listing, "r/n/2"), ElementsAre());
  EXPECT_EQ(listing.Find("r/x"), nullptr);
  EXPECT_EQ(listing.FilesUnder("r/m").size(), 2u);
  EXPECT_THAT(listing.EmptyFoldersUnder("r"), ElementsAre("r/n/2"));
}

TEST(AListing, OfAWholeBucketIsAFolderEvenIfItIsEmpty) {
  EXPECT_THAT(Names(Listing("", {}, nullptr), ""), ElementsAre());
  EXPECT_THAT(Names(Listing("", {File("m/1/x"), File("y")}, nullptr), ""), ElementsAre("m/", "y"));
  EXPECT_EQ(Listing("r/", {}, nullptr).Find("r"), nullptr);
}

// S01: a bucket is untrusted input; no key in it may lead out of the cache's folder.
TEST(AListing, LeavesOutWhatCannotBeAPath) {
  const Listing listing("r/",
                        {File("r/../x"), File("r/m/../../etc/passwd"), File("r//etc/passwd"),
                         File("r/m/./x"), File(std::string("r/a\0b", 5)), File("r/m//"),
                         File("r/" + std::string(256, 'a')), File("r/..m/ok"), File("r/..")},
                        nullptr);
  EXPECT_THAT(Names(listing, "r"), ElementsAre("..m/"));
  EXPECT_EQ(listing.refused().size(), 8u);
}

TEST(AListing, TakesAKeyThatIsFileAndFolderAsAFolder) {
  const Listing listing("", {File("m"), File("m/1/x")}, nullptr);
  EXPECT_TRUE(listing.Find("m")->is_folder);
  EXPECT_EQ(listing.FilesUnder("").size(), 1u);
}

TEST(AListing, NoticesAChangeInTheSecondOfTheChangeBefore) {
  const Listing first("r/", {File("r/m/a", "1", 100), File("r/m/b", "1", 100)}, nullptr);
  const Listing second("r/", {File("r/m/a", "2", 100), File("r/m/b", "1", 100)}, &first);
  EXPECT_GT(second.Find("r/m/a")->modified_ns, first.Find("r/m/b")->modified_ns);
  EXPECT_EQ(second.Find("r/m/b")->modified_ns, 100);
  const Listing third("r/", {File("r/m/a", "2", 100), File("r/m/b", "3", 100)}, &second);
  EXPECT_GT(third.Find("r/m/b")->modified_ns, second.Find("r/m/a")->modified_ns);
}

TEST(AListing, NoticesWhatIsGoneAndWhatIsOlder) {
  const Listing first("r/", {File("r/m/a", "1", 100), File("r/m/1/x", "1", 200)}, nullptr);
  const Listing gone("r/", {File("r/m/1/x", "1", 200)}, &first);
  EXPECT_GT(gone.Find("r/m")->modified_ns, 200);
  EXPECT_EQ(gone.Find("r/m/1")->modified_ns, 0);
  const Listing older("r/", {File("r/m/a", "0", 50), File("r/m/1/x", "1", 200)}, &first);
  EXPECT_GT(older.Find("r/m/a")->modified_ns, 200);
}

TEST(AListing, ComparesEachNodeWithTheNewestListingThatCoversIt) {
  const Listing root(
      "r/", {File("r/m/a", "1", 100), File("r/m-2/a", "1", 100), File("r/n/a", "1", 100)}, nullptr);
  const Listing model("r/m/", {File("r/m/a", "2", 200), File("r/m/b", "1", 200)}, &root);
  Listing again("r/", {File("r/m/a", "1", 100), File("r/m-2/a", "1", 100), File("r/n/a", "1", 100),
                       File("r/n/b", "1", 150)});
  again.Date({&root, &model});
  EXPECT_GT(again.Find("r/m/a")->modified_ns, 200);
  EXPECT_GT(again.Find("r/m")->modified_ns, model.Find("r/m")->modified_ns);
  EXPECT_EQ(again.Find("r/m-2/a")->modified_ns, 100);
  EXPECT_EQ(again.Find("r/n/a")->modified_ns, 100);
  EXPECT_GT(again.Find("r/n/b")->modified_ns, 200);
  Listing newer("r/m/", {File("r/m/a", "1", 100)});
  newer.Date({&root, &model, &again});
  EXPECT_EQ(newer.Find("r/m/a")->modified_ns, again.Find("r/m/a")->modified_ns);
}

TEST(AListing, IsTheSameAgainWhereNothingChanged) {
  const std::vector<Object> objects = {File("r/m/a", "1", 100), File("r/m/b", "2", 300)};
  const Listing first("r/", objects, nullptr);
  const Listing again("r/", objects, &first);
  for (const char* key : {"r", "r/m", "r/m/a", "r/m/b"}) {
    EXPECT_EQ(again.Find(key)->modified_ns, first.Find(key)->modified_ns) << key;
  }
}

}  // namespace
}  // namespace nereid::object_store
