// SPDX-License-Identifier: Apache-2.0
#include "object_store/bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>

#include <fmt/format.h>

#include "base/mutex.h"
#include "http_client/testing/http_stub.h"
#include "object_store/testing/lines_store.h"

namespace nereid::object_store {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;

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

}  // namespace
}  // namespace nereid::object_store
