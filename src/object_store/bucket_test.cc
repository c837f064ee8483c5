// SPDX-License-Identifier: Apache-2.0
// Tests what all kinds of object stores share, with an invented kind: its lists are lines of text,
// and its requests carry a token.
#include "object_store/bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/temporary_folder.h"
#include "http_client/testing/http_stub.h"
#include "object_store/object_store.h"

namespace nereid::object_store {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;
using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;

class LinesProtocol final : public Protocol {
 public:
  explicit LinesProtocol(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  base::Result<HttpRequest> ListRequest(const std::string& prefix,
                                        const std::string& token) override {
    return Make("/list/" + prefix + "?" + token, {});
  }
  base::Result<HttpRequest> ReadRequest(const Object& object, Range range) override {
    return Make("/get/" + object.key, {{"range", fmt::format("{}+{}", range.offset, range.size)}});
  }
  base::Result<HttpRequest> CurrentRequest(const std::string& key) override {
    return Make("/now/" + key, {});
  }
  base::Result<HttpRequest> WriteRequest(const std::string& key, const std::string& text,
                                         const std::string& etag) override {
    NEREID_ASSIGN_OR_RETURN(HttpRequest request, Make("/put/" + key, {{"if-match", etag}}));
    request.method = http_client::Method::kPut;
    request.body = text;
    return request;
  }
  // Each line is "key etag size md5"; a last line of "> token" says that there is another page.
  base::Result<ListPage> ParseList(std::string_view body) const override {
    ListPage page;
    std::istringstream lines{std::string(body)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Object object;
      words >> object.key;
      if (object.key == ">") {
        words >> page.next;
      } else if (words >> object.etag >> object.size) {
        words >> object.md5;
        page.objects.push_back(std::move(object));
      } else {
        return base::InternalError("a line is wrong");
      }
    }
    return page;
  }
  Failure Explain(const HttpReply& reply) const override {
    return {std::to_string(reply.status), reply.body, reply.status >= 500};
  }
  bool Learn(const HttpReply& reply) override {
    if (reply.status != 401) return false;
    base::MutexLock lock(mutex_);
    return std::exchange(token_, "new") != "new";
  }
  std::string Describe() const override { return "bucket of lines"; }
  base::Status ListError(const std::string& prefix, const Failure& failure) const override {
    return base::InternalError(
        fmt::format("list {}: {} {}", prefix, failure.name, failure.message));
  }
  base::Status ReadError(const Object& object, const Failure& failure) const override {
    return base::InternalError(
        fmt::format("read {}: {} {}", object.key, failure.name, failure.message));
  }

  void LoseToken() {
    base::MutexLock lock(mutex_);
    token_.clear();
  }

 private:
  base::Result<HttpRequest> Make(const std::string& path,
                                 std::map<std::string, std::string> headers) const {
    base::MutexLock lock(mutex_);
    if (token_.empty()) return base::UnavailableError("there is no token");
    HttpRequest request;
    request.url = endpoint_ + path;
    request.headers = std::move(headers);
    request.headers["token"] = token_;
    return request;
  }

  const std::string endpoint_;
  mutable base::Mutex mutex_;
  std::string token_ NEREID_GUARDED_BY(mutex_) = "old";
};

class ABucket : public testing::Test {
 protected:
  ABucket() : server_([this](const StubRequest& request) { return Reply(request); }) {
    auto protocol = std::make_unique<LinesProtocol>(server_.endpoint());
    protocol_ = protocol.get();
    bucket_ = std::make_unique<Bucket>(client_, std::move(protocol), kPolicy);
  }

  void SetReply(HttpStub::Handler reply) {
    base::MutexLock lock(mutex_);
    reply_ = std::move(reply);
  }

  static constexpr http_client::RetryPolicy kPolicy{.attempts = 3,
                                                    .first_pause = std::chrono::milliseconds(1),
                                                    .longest_pause = std::chrono::milliseconds(1)};

 private:
  StubReply Reply(const StubRequest& request) {
    HttpStub::Handler reply;
    {
      base::MutexLock lock(mutex_);
      reply = reply_;
    }
    return reply(request);
  }

  base::Mutex mutex_;
  HttpStub::Handler reply_ NEREID_GUARDED_BY(mutex_);

 protected:
  HttpStub server_;
  http_client::HttpClient client_;
  LinesProtocol* protocol_;
  std::unique_ptr<Bucket> bucket_;
};

TEST_F(ABucket, ListsAllPagesSorted) {
  SetReply([](const StubRequest& request) {
    return StubReply{.body =
                         request.target == "/list/m?" ? "m/b e 1\nother e 1\n> 2\n" : "m/a e 1\n"};
  });
  const auto objects = bucket_->List("m");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  ASSERT_EQ(objects->size(), 2u);
  EXPECT_EQ((*objects)[0].key, "m/a");
  EXPECT_EQ((*objects)[1].key, "m/b");
}

TEST_F(ABucket, RefusesAListThatIsWrongOrDoesNotEnd) {
  SetReply([](const StubRequest&) { return StubReply{.body = "key\n"}; });
  EXPECT_EQ(bucket_->List("m").status().message(), "list m:  a line is wrong");
  SetReply([](const StubRequest&) { return StubReply{.body = "> same\n"}; });
  EXPECT_EQ(bucket_->List("m").status().message(), "list m:  the list does not end");
}

TEST_F(ABucket, RetriesAtOnceWithWhatARefusalTaught) {
  SetReply([](const StubRequest& request) {
    return StubReply{.status = request.headers.at("token") == "new" ? 200 : 401};
  });
  EXPECT_TRUE(bucket_->List("m").ok());
  EXPECT_EQ(server_.Targets().size(), 2u);
}

TEST_F(ABucket, ReportsWhyARequestCannotBeMade) {
  protocol_->LoseToken();
  EXPECT_EQ(bucket_->List("m").status().message(), "list m:  there is no token");
  EXPECT_EQ(server_.Targets().size(), 0u);
}

TEST_F(ABucket, ContinuesWhereAReplyWasCutOff) {
  SetReply([](const StubRequest& request) {
    const std::string& range = request.headers.at("range");
    const size_t offset = std::stoul(range);
    const std::string body = std::string("0123456789").substr(offset);
    return StubReply{.headers = {{"Content-Range", fmt::format("bytes {}-9/10", offset)}},
                     .body = body,
                     .cut_off = body.size() > 2 ? body.size() - 2 : 0};
  });
  std::string read;
  const auto result =
      bucket_->Read({.key = "k", .etag = "e", .size = 10}, {0, 10}, [&](std::string_view bytes) {
        read += bytes;
        return base::OkStatus();
      });
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(read, "0123456789");
  EXPECT_EQ(server_.Targets().size(), 5u);  // more than the attempts without progress
}

TEST_F(ABucket, RefusesMoreBytesThanRequested) {
  SetReply([](const StubRequest&) { return StubReply{.body = "0123456789"}; });
  const auto result = bucket_->Read({.key = "k", .etag = "e", .size = 5}, {0, 5},
                                    [](std::string_view) { return base::OkStatus(); });
  EXPECT_EQ(result.status().message(), "read k:  the reply is too long");
  EXPECT_EQ(server_.Targets().size(), 1u);
}

TEST_F(ABucket, IsCancelledWhileItWaitsForBytes) {
  std::stop_source stop;
  SetReply([&](const StubRequest&) {
    stop.request_stop();
    return StubReply{.body = "0123456789", .cut_off = 10, .hangs = true};
  });
  const auto result = bucket_->Read(
      {.key = "k", .etag = "e", .size = 10}, {0, 10},
      [](std::string_view) { return base::OkStatus(); }, stop.get_token());
  EXPECT_THAT(result.status().message(), HasSubstr("curlCode: 42"));
  EXPECT_EQ(server_.Targets().size(), 1u);
}

TEST_F(ABucket, ReadsAnObjectAsItIsNow) {
  SetReply([](const StubRequest& request) {
    if (request.headers.at("token") != "new") return StubReply{.status = 401};
    return StubReply{.headers = {{"ETag", "\"e7\""}}, .body = "text"};
  });
  const auto file = bucket_->ReadNow("k", 4, {});
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->text, "text");
  EXPECT_EQ((*file)->mark, "e7");
  EXPECT_EQ(bucket_->ReadNow("k", 3, {}).status().message(), "read k:  it is larger than 3 bytes");
  SetReply([](const StubRequest&) { return StubReply{.status = 404, .body = "none"}; });
  EXPECT_EQ(*bucket_->ReadNow("k", 3, {}), std::nullopt);
}

TEST_F(ABucket, DoesNotRepeatALook) {
  SetReply([](const StubRequest&) { return StubReply{.status = 503, .body = "busy"}; });
  EXPECT_EQ(bucket_->ReadNow("k", 3, {}).status().message(), "read k: 503 busy");
  EXPECT_EQ(server_.Targets().size(), 1u);
}

TEST_F(ABucket, WritesAnObjectThatNobodyElseHasWritten) {
  std::atomic<int> busy{1};
  SetReply([&](const StubRequest& request) {
    if (busy-- > 0) return StubReply{.status = 503, .body = "busy"};
    const bool is_right = request.method == "PUT" && request.body == "text";
    return StubReply{.status = !is_right                                ? 400
                               : request.headers.at("if-match") == "e7" ? 200
                                                                        : 412};
  });
  const auto written = bucket_->Write("k", "text", "e7");
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  EXPECT_TRUE(*written);
  EXPECT_EQ(server_.Targets().size(), 2u);
  EXPECT_FALSE(*bucket_->Write("k", "text", "e6"));
  EXPECT_THAT(bucket_->Write("k", "other", "e7").status().message(),
              HasSubstr("Failed to write object k: 400"));
}

// -- A store of this invented kind --

class LinesProvider final : public Provider {
 public:
  explicit LinesProvider(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  base::Result<Location> Parse(std::string_view path) const override {
    if (!path.starts_with("lines://")) return base::InternalError("no lines");
    return Location{"lines://b", "b", std::string(path.substr(std::min<size_t>(10, path.size())))};
  }
  base::Result<Access> Open(const std::string&, http_client::HttpClient&) const override {
    return Access{"b", std::make_unique<LinesProtocol>(endpoint_)};
  }
  std::string CannotOpen() const override { return "Cannot open lines. "; }

 private:
  const std::string endpoint_;
};

class AStoreOfAnyKind : public ABucket {
 protected:
  AStoreOfAnyKind() : folder_(base::MakeTemporaryFolder("lines").value()) {
    ObjectStoreOptions options;
    options.cache.directory = folder_.path + "/cache";
    options.retry = kPolicy;
    store_ = std::make_unique<ObjectStore>(std::make_unique<LinesProvider>(server_.endpoint()),
                                           std::move(options));
  }
  ~AStoreOfAnyKind() override { std::filesystem::remove_all(folder_.path); }

  const base::TemporaryFolder folder_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(AStoreOfAnyKind, BringsAFolderToThisMachine) {
  SetReply([](const StubRequest& request) {
    return StubReply{.body = request.target.starts_with("/list/")
                                 ? "m/1/x e 5 5d41402abc4b2a76b9719d911017c592\n"
                                 : "hello"};
  });
  const auto folder = store_->Localize("lines://b/m");
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  std::string text;
  std::ifstream(folder->path + "/1/x") >> text;
  EXPECT_EQ(text, "hello");
  EXPECT_TRUE(folder->path.ends_with("/m"));
}

TEST_F(AStoreOfAnyKind, RefusesBytesOfAnotherMd5) {
  SetReply([](const StubRequest& request) {
    return StubReply{.body = request.target.starts_with("/list/")
                                 ? "m/1/x e 5 5d41402abc4b2a76b9719d911017c592\n"
                                 : "HELLO"};
  });
  EXPECT_THAT(store_->Localize("lines://b/m").status().message(),
              HasSubstr("does not have the checksum 5d41402abc4b2a76b9719d911017c592"));
}

TEST_F(AStoreOfAnyKind, HasItsOwnErrorWhenItIsUnreachable) {
  SetReply([](const StubRequest&) { return StubReply{.status = 403, .body = "no"}; });
  EXPECT_EQ(store_->CheckRepository("lines://b/m").message(), "Cannot open lines. list m/: 403 no");
}

}  // namespace
}  // namespace nereid::object_store
