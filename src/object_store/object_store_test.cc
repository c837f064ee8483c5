// SPDX-License-Identifier: Apache-2.0
#include "object_store/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/temporary_folder.h"
#include "http_client/testing/http_stub.h"
#include "object_store/testing/lines_store.h"

namespace nereid::object_store {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kRoot = "lines://b/r";
constexpr const char* kModel = "lines://b/r/m";
constexpr const char* kFile = "lines://b/r/m/1/x";

// A store with the objects that a test puts there. Each list of a root is a new one.
class AnObjectStore : public testing::Test {
 protected:
  AnObjectStore() : folder_(base::MakeTemporaryFolder("lines").value()) { MakeStore({}); }
  ~AnObjectStore() override { std::filesystem::remove_all(folder_.path); }

  void MakeStore(ObjectStoreOptions options) {
    options.cache.directory = folder_.path + "/cache";
    options.retry = {.attempts = 1};
    options.root_stays = std::chrono::milliseconds(-1);
    store_ = std::make_unique<ObjectStore>(std::make_unique<LinesProvider>(server_.endpoint()),
                                           std::move(options));
  }
  void Put(const std::string& key, const std::string& etag, int64_t seconds) {
    base::MutexLock lock(mutex_);
    objects_[key] = fmt::format("{} 5 {} 5d41402abc4b2a76b9719d911017c592", etag, seconds);
  }
  void Remove(const std::string& key) {
    base::MutexLock lock(mutex_);
    objects_.erase(key);
  }
  void SetDown(bool is_down) {
    base::MutexLock lock(mutex_);
    is_down_ = is_down;
  }
  void SetContents(const std::string& contents) {
    base::MutexLock lock(mutex_);
    contents_ = contents;
  }
  // Runs `action` while the next list is on its way back.
  void During(std::function<void()> action) {
    base::MutexLock lock(mutex_);
    action_ = std::move(action);
  }
  int64_t Time(const std::string& path) const {
    const auto time = store_->ModifiedNs(path);
    EXPECT_TRUE(time.ok()) << time.status().ToString();
    return time.ok() ? *time : 0;
  }
  std::vector<std::string> Names(const std::string& folder) const {
    std::vector<std::string> names;
    const auto entries = store_->List(folder);
    if (!entries.ok()) return {std::string(entries.status().message())};
    for (const repository::Entry& entry : *entries) names.push_back(entry.name);
    return names;
  }
  size_t CountOf(const std::string& target) const {
    const std::vector<std::string> targets = server_.Targets();
    return static_cast<size_t>(std::count(targets.begin(), targets.end(), target));
  }

 private:
  StubReply Reply(const StubRequest& request) {
    StubReply reply;
    std::function<void()> action;
    {
      base::MutexLock lock(mutex_);
      if (is_down_) return {.status = 403, .body = "no"};
      constexpr std::string_view kList = "/list/";
      if (!request.target.starts_with(kList)) return {.body = contents_};
      const std::string prefix =
          request.target.substr(kList.size(), request.target.find('?') - kList.size());
      for (const auto& [key, rest] : objects_) {
        if (key.starts_with(prefix)) reply.body += fmt::format("{} {}\n", key, rest);
      }
      action = std::exchange(action_, nullptr);
    }
    if (action) action();
    return reply;
  }

  base::Mutex mutex_;
  std::map<std::string, std::string> objects_ NEREID_GUARDED_BY(mutex_);
  bool is_down_ NEREID_GUARDED_BY(mutex_) = false;
  std::string contents_ NEREID_GUARDED_BY(mutex_) = "hello";
  std::function<void()> action_ NEREID_GUARDED_BY(mutex_);

 protected:
  const base::TemporaryFolder folder_;
  HttpStub server_{[this](const StubRequest& request) { return Reply(request); }};
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(AnObjectStore, BringsAFolderToThisMachine) {
  Put("m/1/x", "e", 100);
  const auto folder = store_->Localize("lines://b/m");
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  std::string text;
  std::ifstream(folder->path + "/1/x") >> text;
  EXPECT_EQ(text, "hello");
  EXPECT_TRUE(folder->path.ends_with("/m"));
}

TEST_F(AnObjectStore, RefusesBytesOfAnotherMd5) {
  Put("m/1/x", "e", 100);
  SetContents("HELLO");
  EXPECT_THAT(store_->Localize("lines://b/m").status().message(),
              HasSubstr("does not have the checksum 5d41402abc4b2a76b9719d911017c592"));
}

TEST_F(AnObjectStore, HasItsOwnErrorWhenItIsUnreachable) {
  SetDown(true);
  EXPECT_EQ(store_->CheckRepository("lines://b/m").message(), "Cannot open lines. list m/: 403 no");
}

// -- Listings of a repository, and of a folder in it --

TEST_F(AnObjectStore, NoticesAChangeThatWasUndone) {
  Put("r/m/1/x", "first", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/1/x", "second", 200);
  store_->Refresh(kModel);
  const int64_t second = Time(kFile);
  EXPECT_EQ(second, 200'000'000'000);
  Put("r/m/1/x", "first", 100);
  EXPECT_THAT(Names(kRoot), ElementsAre("m"));
  EXPECT_GT(Time(kFile), second);
  store_->Refresh(kModel);
  EXPECT_GT(Time(kFile), second);
}

TEST_F(AnObjectStore, NoticesAVersionThatCameAndWent) {
  Put("r/m/1/x", "e", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/2/x", "e", 200);
  store_->Refresh(kModel);
  const int64_t with_both = Time(kModel);
  Remove("r/m/2/x");
  EXPECT_THAT(Names(kRoot), ElementsAre("m"));
  store_->Refresh(kModel);
  EXPECT_GT(Time(kModel), with_both);
}

TEST_F(AnObjectStore, DatesNoModelByAnotherOne) {
  Put("r/a/1/x", "e", 50);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/1/x", "e", 100);
  store_->Refresh(kModel);
  const int64_t file = Time(kFile);
  const int64_t folder = Time(kModel);
  Put("r/n/1/x", "e", 200);
  EXPECT_THAT(Names(kRoot), ElementsAre("a", "m", "n"));
  store_->Refresh(kModel);
  EXPECT_EQ(Time(kFile), file);
  EXPECT_EQ(Time(kModel), folder);
}

TEST_F(AnObjectStore, KeepsAListingOfAFolderThatBeganAfterOneOfTheRoot) {
  Put("r/m/1/x", "first", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  int64_t second = 0;
  During([&] {
    Put("r/m/1/x", "second", 200);
    store_->Refresh(kModel);
    second = Time(kFile);
  });
  EXPECT_THAT(Names(kRoot), ElementsAre("m"));
  EXPECT_EQ(second, 200'000'000'000);
  EXPECT_EQ(Time(kFile), second);
  store_->Refresh(kModel);
  EXPECT_EQ(Time(kFile), second);
  EXPECT_THAT(Names(kRoot), ElementsAre("m"));
  EXPECT_EQ(Time(kFile), second);
}

TEST_F(AnObjectStore, KeepsAListingOfTheRootThatBeganAfterOneOfAFolder) {
  Put("r/m/1/x", "first", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  During([&] {
    Put("r/m/1/x", "second", 200);
    EXPECT_THAT(Names(kRoot), ElementsAre("m"));
  });
  store_->Refresh(kModel);
  EXPECT_EQ(Time(kFile), 200'000'000'000);
}

TEST_F(AnObjectStore, KeepsTheOneOfTwoListingsThatBeganLater) {
  During([&] {
    Put("r/m/1/x", "e", 100);
    EXPECT_TRUE(store_->CheckRepository(kRoot).ok());
  });
  EXPECT_TRUE(store_->CheckRepository(kRoot).ok());  // the answer of the newer one
  EXPECT_TRUE(store_->IsFolder(kModel));
}

TEST_F(AnObjectStore, ListsAFolderAsItsOwnListingHasItHoweverOldThatIs) {
  Put("r/m/1/x", "e", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/2/x", "e", 200);
  store_->Refresh(kModel);
  EXPECT_THAT(Names(kModel), ElementsAre("1", "2"));
  EXPECT_EQ(CountOf("/list/r/m/?"), 1u);
}

TEST_F(AnObjectStore, KeepsWhatItKnowsOfAFolderWhileTheRootCannotBeListed) {
  Put("r/m/1/x", "e", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  store_->Refresh(kModel);
  SetDown(true);
  EXPECT_THAT(Names(kRoot), ElementsAre("list r/: 403 no"));
  EXPECT_THAT(Names(kModel), ElementsAre("1"));
  SetDown(false);
  EXPECT_THAT(Names(kRoot), ElementsAre("m"));
}

TEST_F(AnObjectStore, ComparesWithTheLastListingThatSucceeded) {
  Put("r/m/1/x", "first", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/1/x", "second", 200);
  store_->Refresh(kModel);
  const int64_t second = Time(kFile);
  SetDown(true);
  store_->Refresh(kModel);
  EXPECT_FALSE(store_->IsFolder(kModel));
  store_->Refresh(kRoot);
  SetDown(false);
  store_->Refresh(kModel);
  EXPECT_EQ(Time(kFile), second);
  Put("r/m/1/x", "first", 100);
  store_->Refresh(kModel);
  EXPECT_GT(Time(kFile), second);
}

TEST_F(AnObjectStore, ForgetsOnlyWhatIsNotThere) {
  MakeStore({.max_known = 2});
  for (int i = 0; i < 5; ++i) store_->Refresh(fmt::format("lines://b/r/guess-{}", i));
  EXPECT_FALSE(store_->IsFolder("lines://b/r/guess-0"));
  EXPECT_EQ(CountOf("/list/r/guess-0/?"), 2u);
  Put("r/m/1/x", "e", 100);
  ASSERT_TRUE(store_->CheckRepository(kRoot).ok());
  Put("r/m/2/x", "e", 200);
  store_->Refresh(kModel);
  const int64_t with_both = Time(kModel);
  for (int i = 0; i < 5; ++i) store_->Refresh(fmt::format("lines://b/r/guess-{}", i));
  Remove("r/m/2/x");
  store_->Refresh(kModel);
  EXPECT_THAT(Names(kModel), ElementsAre("1"));
  EXPECT_GT(Time(kModel), with_both);
}

}  // namespace
}  // namespace nereid::object_store
