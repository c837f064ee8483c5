// SPDX-License-Identifier: Apache-2.0
// Tests the store with replies that a real server seldom sends; tests/e2e/test_s3_repository.py
// uses a real one.
#include "s3/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>

#include "http_client/testing/http_stub.h"
#include "http_client/url.h"

namespace nereid::s3 {
namespace {

namespace fs = std::filesystem;
using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;

class AStore : public testing::Test {
 protected:
  struct Stored {
    std::string body;
    std::string etag;
  };

  AStore() : server_([this](const StubRequest& request) { return ReplyTo(request); }) {
    std::string path = (fs::temp_directory_path() / "s3-XXXXXX").string();
    root_ = ::mkdtemp(path.data());
    store_ = MakeStore();
  }
  ~AStore() override { fs::remove_all(root_); }

  std::unique_ptr<repository::Store> MakeStore() {
    S3StoreOptions options;
    options.store.cache.directory = root_ / "cache";
    options.store.cache.download = {.connections = 4, .part_bytes = 1 << 20};
    options.store.retry = {.attempts = 3,
                           .first_pause = std::chrono::milliseconds(1),
                           .longest_pause = std::chrono::milliseconds(1)};
    options.environment = [](const char* name) -> std::optional<std::string> {
      // Nobody is asked for keys.
      if (std::string_view(name) == "AWS_EC2_METADATA_DISABLED") return "true";
      return std::nullopt;
    };
    return MakeS3Store(std::move(options));
  }
  std::string Path(const std::string& key) const {
    return "s3://" + server_.endpoint() + "/b/" + key;
  }

  void Put(const std::string& key, std::string body, std::string etag = "tag-1") {
    base::MutexLock lock(mutex_);
    objects_[key] = {std::move(body), std::move(etag)};
  }

  using Fault = std::function<std::optional<StubReply>(const StubRequest&)>;
  void SetFault(Fault fault) {
    base::MutexLock lock(mutex_);
    fault_ = std::move(fault);
  }

  // The reply of a server without faults.
  StubReply ReplyTo(const StubRequest& request) {
    Fault fault;
    {
      base::MutexLock lock(mutex_);
      fault = fault_;
    }
    if (fault) {
      if (auto reply = fault(request)) return *reply;
    }
    base::MutexLock lock(mutex_);
    const std::string target = http_client::PercentDecode(request.target);
    if (target.starts_with("/b/?")) return List(target);
    const auto found = objects_.find(target.substr(3));
    if (found == objects_.end()) return {404, {}, "<Error><Code>NoSuchKey</Code></Error>"};
    const std::string& range = request.headers.at("range");  // bytes=first-last
    const size_t first = std::stoul(range.substr(6));
    const size_t last = std::stoul(range.substr(range.find('-') + 1));
    const std::string& body = found->second.body;
    return {206,
            {{"ETag", "\"" + found->second.etag + "\""},
             {"Content-Range", fmt::format("bytes {}-{}/{}", first, last, body.size())}},
            body.substr(first, last + 1 - first)};
  }

  // Lists two objects on each page.
  StubReply List(const std::string& target) NEREID_REQUIRES(mutex_) {
    const std::string prefix = target.substr(target.find("prefix=") + 7);
    const size_t token = target.find("continuation-token=");
    const std::string after =
        token == std::string::npos ? "" : target.substr(token + 19, target.find('&') - token - 19);
    std::string xml = "<ListBucketResult>";
    int count = 0;
    std::string last;
    for (const auto& [key, object] : objects_) {
      if (!key.starts_with(prefix) || key <= after) continue;
      if (++count > 2) break;
      last = key;
      xml += fmt::format(
          "<Contents><Key>{}</Key><ETag>\"{}\"</ETag><Size>{}</Size>"
          "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
          key, object.etag, object.body.size());
    }
    if (count > 2) {
      xml += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last +
             "</NextContinuationToken>";
    }
    return {200, {}, xml + "</ListBucketResult>"};
  }

  static std::string Slurp(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static std::string Random(size_t size) {
    std::mt19937 random(7);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  size_t CountOf(const std::string& text) const {
    size_t count = 0;
    for (const std::string& target : server_.Targets()) count += target.find(text) != target.npos;
    return count;
  }

  fs::path root_;
  base::Mutex mutex_;
  std::map<std::string, Stored> objects_ NEREID_GUARDED_BY(mutex_);
  Fault fault_ NEREID_GUARDED_BY(mutex_);  // replies first, unless it returns nothing
  HttpStub server_;
  std::unique_ptr<repository::Store> store_;
};

TEST_F(AStore, ListsAllPagesWithOneRequestEach) {
  for (const char* key : {"r/a/1/x", "r/a/config.pbtxt", "r/b/1/x", "r/b/2/x", "r/c/1/"})
    Put(key, "x");
  store_->Refresh(Path("r"));
  const auto entries = store_->List(Path("r"));
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 3u);
  EXPECT_TRUE(store_->IsFolder(Path("r/b/2")));
  EXPECT_TRUE(store_->Exists(Path("r/a/config.pbtxt")));
  EXPECT_FALSE(store_->Exists(Path("r/a/labels.txt")));
  EXPECT_TRUE(store_->ModifiedNs(Path("r/a/1/x")).ok());
  EXPECT_EQ(server_.Targets().size(), 3u);
}

TEST_F(AStore, BringsAFolderWithLargeAndEmptyFiles) {
  const std::string large = Random((5 << 20) + 123);
  Put("m/1/model.bin", large);
  Put("m/1/empty", "");
  Put("m/2/", "");
  const auto folder = store_->Localize(Path("m"));
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  EXPECT_EQ(Slurp(folder->path + "/1/model.bin"), large);
  EXPECT_EQ(Slurp(folder->path + "/1/empty"), "");
  EXPECT_TRUE(fs::is_directory(folder->path + "/2"));
  EXPECT_TRUE(folder->path.ends_with("/m"));
}

// Replies to writes on condition as Amazon does, to "m/file" with the tag "t2".
std::optional<StubReply> ReplyToWrite(const StubRequest& request) {
  if (request.method != "PUT") return std::nullopt;
  const auto match = request.headers.find("if-match");
  const bool is_as_it_was = match != request.headers.end() && match->second == "\"t2\"";
  return StubReply{.status = is_as_it_was && request.body == "new" ? 200 : 412};
}

TEST_F(AStore, IsWrittenOnlyWhereItIsAsItWas) {
  SetFault(ReplyToWrite);
  EXPECT_TRUE(*store_->Replace(Path("m/file"), "new", repository::SmallFile{"old", "t2"}));
  EXPECT_FALSE(*store_->Replace(Path("m/file"), "new", repository::SmallFile{"old", "t1"}));
  EXPECT_FALSE(*store_->Replace(Path("m/file"), "new", std::nullopt));
}

TEST_F(AStore, IsWrittenWithoutAConditionWhereItKnowsNone) {
  SetFault([](const StubRequest& request) -> std::optional<StubReply> {
    if (request.method != "PUT") return std::nullopt;
    return StubReply{.status = request.headers.contains("if-none-match") ? 501 : 200};
  });
  const auto written = store_->Replace(Path("m/file"), "new", std::nullopt);
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  EXPECT_TRUE(*written);
}

TEST_F(AStore, ReadsAFileAsItIsNow) {
  SetFault([](const StubRequest&) -> std::optional<StubReply> {
    return StubReply{.headers = {{"ETag", "\"t2\""}}, .body = "now"};
  });
  EXPECT_EQ(**store_->ReadNow(Path("m/file"), 10, {}), (repository::SmallFile{"now", "t2"}));
  SetFault([](const StubRequest&) -> std::optional<StubReply> {
    return StubReply{.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"};
  });
  EXPECT_EQ(*store_->ReadNow(Path("m/file"), 10, {}), std::nullopt);
}

TEST_F(AStore, RetriesTemporaryErrors) {
  Put("m/x", "hello");
  std::atomic<int> faults{0};
  SetFault([&](const StubRequest&) -> std::optional<StubReply> {
    if (++faults % 3 == 0) return std::nullopt;
    return StubReply{503, {}, "<Error><Code>SlowDown</Code></Error>"};
  });
  EXPECT_EQ(*store_->Read(Path("m/x"), 100), "hello");
  EXPECT_EQ(server_.Targets().size(), 6u);
}

TEST_F(AStore, GivesUpOnPersistentErrors) {
  Put("m/x", "hello");
  SetFault([](const StubRequest&) {
    return StubReply{500, {}, "<Error><Code>InternalError</Code><Message>no</Message></Error>"};
  });
  EXPECT_THAT(
      store_->CheckRepository(Path("m")).message(),
      HasSubstr("due to exception: InternalError, error message: no (bucket 'b' at http://"));
  EXPECT_EQ(server_.Targets().size(), 3u);
}

TEST_F(AStore, DoesNotRepeatARefusedRequest) {
  SetFault([](const StubRequest&) {
    return StubReply{403, {}, "<Error><Code>AccessDenied</Code></Error>"};
  });
  EXPECT_THAT(
      store_->CheckRepository(Path("m")).message(),
      testing::StartsWith("Unable to create S3 filesystem client. Check account credentials."));
  EXPECT_EQ(server_.Targets().size(), 1u);
}

TEST_F(AStore, ContinuesWhereAReplyWasCutOff) {
  const std::string large = Random(3 << 20);
  Put("m/x", large);
  SetFault([this](const StubRequest& request) -> std::optional<StubReply> {
    const auto range = request.headers.find("range");
    // Fails the second of the three parts, and only when it is requested from its beginning.
    if (range == request.headers.end() || range->second != "bytes=1048576-2097151") {
      return std::nullopt;
    }
    base::MutexLock lock(mutex_);
    const Stored& object = objects_["m/x"];
    return StubReply{206,
                     {{"Content-Range", "bytes 1048576-2097151/3145728"}},
                     object.body.substr(1 << 20, 1 << 20),
                     1000};
  });
  const auto folder = store_->Localize(Path("m"));
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  EXPECT_EQ(Slurp(folder->path + "/x"), large);
}

TEST_F(AStore, DoesNotMixAnObjectWithTheOneThatReplacedIt) {
  Put("m/x", "first", "tag-1");
  store_->Refresh(Path("m"));
  Put("m/x", "other", "tag-2");
  EXPECT_THAT(store_->Localize(Path("m")).status().message(),
              HasSubstr("it was changed meanwhile"));
  store_->Refresh(Path("m"));
  const auto folder = store_->Localize(Path("m"));
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  EXPECT_EQ(Slurp(folder->path + "/x"), "other");
}

TEST_F(AStore, RefusesAPartOtherThanTheRequestedOne) {
  Put("m/x", Random(2 << 20));
  SetFault([this](const StubRequest& request) -> std::optional<StubReply> {
    if (!request.headers.contains("range")) return std::nullopt;
    base::MutexLock lock(mutex_);
    return StubReply{
        200, {}, objects_["m/x"].body};  // the whole object, whatever part was requested
  });
  EXPECT_FALSE(store_->Localize(Path("m")).ok());
}

TEST_F(AStore, ChecksTheMd5InAnEtag) {
  Put("m/x", "hello world", "5eb63bbbe01eeed093cb22bb8f5acdc3");
  ASSERT_TRUE(store_->Localize(Path("m")).ok());
  Put("m/y", "hello World", "5eb63bbbe01eeed093cb22bb8f5acdc3");
  store_->Refresh(Path("m"));
  EXPECT_THAT(store_->Localize(Path("m")).status().message(),
              HasSubstr("does not have the checksum 5eb63bbbe01eeed093cb22bb8f5acdc3"));
  // With keys of the user, the ETag is not an MD5.
  SetFault([](const StubRequest& request) -> std::optional<StubReply> {
    if (!request.target.ends_with("/y")) return std::nullopt;
    return StubReply{
        206,
        {{"Content-Range", "bytes 0-10/11"}, {"x-amz-server-side-encryption", "aws:kms"}},
        "hello World"};
  });
  EXPECT_TRUE(store_->Localize(Path("m")).ok());
}

TEST_F(AStore, FetchesNothingTwice) {
  Put("m/1/x", "one");
  Put("m/2/x", "two");
  ASSERT_TRUE(store_->Localize(Path("m")).ok());
  EXPECT_EQ(CountOf("/1/x") + CountOf("/2/x"), 2u);
  store_ = MakeStore();
  ASSERT_TRUE(store_->Localize(Path("m")).ok());
  Put("m/3/x", "three");
  store_->Refresh(Path("m"));
  ASSERT_TRUE(store_->Localize(Path("m")).ok());
  EXPECT_EQ(CountOf("/1/x") + CountOf("/2/x"), 2u);
  EXPECT_EQ(CountOf("/3/x"), 1u);
}

TEST_F(AStore, KeepsAStateAsLongAsItIsUsed) {
  Put("m/x", "one", "tag-1");
  auto first = store_->Localize(Path("m"));
  Put("m/x", "two", "tag-2");
  store_->Refresh(Path("m"));
  const auto second = store_->Localize(Path("m"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Slurp(first->path + "/x"), "one");
  EXPECT_EQ(Slurp(second->path + "/x"), "two");
  first->files.reset();
  EXPECT_FALSE(fs::exists(first->path));
  EXPECT_EQ(Slurp(second->path + "/x"), "two");
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : fs::directory_iterator(root_ / "cache/files")) ++files;
  EXPECT_EQ(files, 1u);
}

TEST_F(AStore, ServesSeveralAtOnce) {
  const std::string large = Random(2 << 20);
  for (int i = 0; i < 4; ++i) Put(fmt::format("m/{}/x", i), large);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, &large] {
      const auto other = MakeStore();  // as in another server process
      for (repository::Store* store : {store_.get(), other.get()}) {
        const auto folder = store->Localize(Path("m"));
        ASSERT_TRUE(folder.ok()) << folder.status().ToString();
        EXPECT_EQ(Slurp(folder->path + "/3/x"), large);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CountOf("/b/m/0/x"), 2u);  // two parts, each fetched once by one of the stores
}

TEST_F(AStore, DoesNotWriteOutsideItsCache) {
  Put("m/../../evil", "x");
  Put("m/ok", "x");
  const auto folder = store_->Localize(Path("m"));
  ASSERT_TRUE(folder.ok());
  EXPECT_FALSE(fs::exists(folder->path + "/../../evil"));
  EXPECT_EQ(CountOf("evil"), 0u);
}

TEST_F(AStore, RemembersWhatChangedWithinASecond) {
  Put("m/1/x", "one", "tag-1");
  Put("m/1/y", "one", "tag-1");
  store_->Refresh(Path("m"));
  const int64_t before = *store_->ModifiedNs(Path("m/1/y"));
  Put("m/1/x", "two", "tag-2");
  store_->Refresh(Path("m"));
  EXPECT_GT(*store_->ModifiedNs(Path("m/1/x")), before);
  EXPECT_EQ(*store_->ModifiedNs(Path("m/1/y")), before);
}

TEST_F(AStore, KeepsItsListingWhileS3IsUnreachable) {
  Put("m/1/x", "one", "tag-1");
  store_->Refresh(Path("m"));
  SetFault([](const StubRequest&) { return StubReply{503, {}, ""}; });
  store_->Refresh(Path("m"));
  EXPECT_FALSE(store_->List(Path("m")).ok());
  SetFault(nullptr);
  store_->Refresh(Path("m"));
  EXPECT_EQ(*store_->ModifiedNs(Path("m/1/x")), 1767225600'000'000'000);  // not a change
}

}  // namespace
}  // namespace nereid::s3
