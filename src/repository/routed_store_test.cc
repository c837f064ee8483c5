// SPDX-License-Identifier: Apache-2.0
#include "repository/routed_store.h"

#include <gtest/gtest.h>

namespace nereid::repository {
namespace {

// A store with one folder.
class OneFolder final : public Store {
 public:
  base::Result<std::vector<Entry>> List(const std::string&) const override {
    return std::vector<Entry>{{"m", true}};
  }
  bool Exists(const std::string& path) const override { return IsFolder(path); }
  bool IsFolder(const std::string& path) const override { return path == "far://here"; }
  base::Result<std::string> Read(const std::string&, size_t) const override {
    return std::string("far");
  }
  base::Result<int64_t> ModifiedNs(const std::string&) const override { return 7; }
  base::Result<LocalFolder> Localize(const std::string&) const override {
    return LocalFolder{"/near", nullptr};
  }
};

TEST(ARoutedStore, AsksTheStoreThatAPathBelongsTo) {
  int made = 0;
  const RoutedStore store({{"far://", [&made] {
                              ++made;
                              return std::make_unique<OneFolder>();
                            }}});
  EXPECT_TRUE(store.IsFolder("/"));
  EXPECT_FALSE(store.Exists("/no/such/file"));
  EXPECT_EQ(store.Localize("/x")->path, "/x");
  EXPECT_EQ(made, 0);  // a store without paths is not made
  EXPECT_TRUE(store.CheckRepository("far://here").ok());
  EXPECT_EQ(store.CheckRepository("far://there").message(),
            "failed to stat file far://there: there is no such model repository");
  EXPECT_EQ(store.List("far://here")->size(), 1u);
  EXPECT_EQ(*store.Read("far://x", 10), "far");
  EXPECT_EQ(*store.ModifiedNs("far://x"), 7);
  EXPECT_EQ(store.Localize("far://x")->path, "/near");
  EXPECT_EQ(made, 1);
}

TEST(ARoutedStore, ReportsUnknownSchemes) {
  const RoutedStore store;
  EXPECT_EQ(store.CheckRepository("gs://bucket").message(), "gs:// file-system not supported.");
  EXPECT_EQ(store.CheckRepository("as://account").message(), "as:// file-system not supported.");
  EXPECT_EQ(store.CheckRepository("azure://account").message(),
            "azure:// file-system not supported.");
}

TEST(ARoutedStore, AsksAStoreOfAKindThatItWasGiven) {
  const RoutedStore store({{"gs://", [] { return std::make_unique<OneFolder>(); }}});
  EXPECT_EQ(store.CheckRepository("gs://bucket").message(),
            "failed to stat file gs://bucket: there is no such model repository");
}

}  // namespace
}  // namespace nereid::repository
