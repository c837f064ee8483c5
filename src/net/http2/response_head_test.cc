// SPDX-License-Identifier: Apache-2.0
#include "http2/response_head.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "http2/testing/client.h"

namespace nereid::http2 {
namespace {

using Fields = std::map<std::string, std::string>;

// A minimal server made of nghttp2, with one call of a client.
class ResponseHeadTest : public testing::Test {
 protected:
  ResponseHeadTest() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_server_new(&session_, callbacks, nullptr);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
    id_ = client_.Call(TestClient::CallHeaders("/x"), "");
    const std::string bytes = client_.TakeOutput();
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
  }
  ~ResponseHeadTest() override { nghttp2_session_del(session_); }

  // Returns what the client receives.
  const Fields& Response() {
    const uint8_t* data = nullptr;
    for (ssize_t n; (n = nghttp2_session_mem_send(session_, &data)) > 0;) {
      client_.Feed({reinterpret_cast<const char*>(data), static_cast<size_t>(n)});
    }
    return client_.reply(id_).headers;
  }
  // Supplies messages without bytes; the trailers are submitted at their end.
  nghttp2_data_provider Provider(const std::function<void()>& submit_trailers) {
    nghttp2_data_provider provider;
    provider.source.ptr = const_cast<std::function<void()>*>(&submit_trailers);
    provider.read_callback = [](nghttp2_session*, int32_t, uint8_t*, size_t, uint32_t* flags,
                                nghttp2_data_source* source, void*) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      (*static_cast<std::function<void()>*>(source->ptr))();
      return ssize_t{0};
    };
    return provider;
  }

  TestClient client_;
  nghttp2_session* session_ = nullptr;
  int32_t id_ = 0;
};

TEST_F(ResponseHeadTest, FurtherTrailersFollowTheStatus) {
  const GrpcTrailers more = {{"grpc-retry-pushback-ms", "250"}};
  EXPECT_EQ(SubmitStatus(session_, id_, 14, "busy", &more), 0);
  const Fields fields = Response();
  EXPECT_EQ(fields.at("grpc-status"), "14");
  EXPECT_EQ(fields.at("grpc-retry-pushback-ms"), "250");
}

TEST_F(ResponseHeadTest, FurtherTrailersFollowMessages) {
  const GrpcTrailers more = {{"load-bin", "AAE="}};
  const std::function<void()> submit = [this, &more] {
    EXPECT_EQ(SubmitTrailers(session_, id_, 0, "", &more), 0);
  };
  EXPECT_EQ(SubmitHead(session_, id_, net::Compression::kIdentity, Provider(submit)), 0);
  const Fields fields = Response();
  EXPECT_EQ(fields.at("grpc-status"), "0");
  EXPECT_EQ(fields.at("load-bin"), "AAE=");
}

TEST_F(ResponseHeadTest, AStatusAloneIsHeadersAndTrailersAtOnce) {
  EXPECT_EQ(SubmitStatus(session_, id_, 5, "no such model: \xc3\xa4"), 0);
  EXPECT_EQ(Response(), (Fields{{":status", "200"},
                                {"content-type", "application/grpc"},
                                {"grpc-status", "5"},
                                {"grpc-message", "no such model: %C3%A4"}}));
  EXPECT_TRUE(client_.reply(id_).is_closed);
}

TEST_F(ResponseHeadTest, AStatusTextIsNoLongerThanClientsAccept) {
  EXPECT_EQ(SubmitStatus(session_, id_, 13, std::string(10'000, 'x')), 0);
  EXPECT_EQ(Response().at("grpc-message"), std::string(4096, 'x'));
}

TEST_F(ResponseHeadTest, AStatusTextIsCountedAsItIsSentAndCutBetweenCharacters) {
  std::string text;
  std::string expected;
  for (int i = 0; i < 4096; ++i) text += "\xe4\xb8\xad";
  for (int i = 0; i < 4096 / 9; ++i) expected += "%E4%B8%AD";
  EXPECT_EQ(SubmitStatus(session_, id_, 13, text), 0);
  EXPECT_EQ(Response().at("grpc-message"), expected);
}

TEST_F(ResponseHeadTest, MessagesHaveAHeadAndTrailers) {
  const std::function<void()> trailers = [this] {
    EXPECT_EQ(SubmitTrailers(session_, id_, 0, ""), 0);
  };
  EXPECT_EQ(SubmitHead(session_, id_, net::Compression::kIdentity, Provider(trailers)), 0);
  EXPECT_EQ(Response(), (Fields{{":status", "200"},
                                {"content-type", "application/grpc"},
                                {"grpc-accept-encoding", "identity, deflate, gzip"},
                                {"grpc-status", "0"}}));
  EXPECT_TRUE(client_.reply(id_).is_closed);
}

TEST_F(ResponseHeadTest, TheEncodingAndAnErrorBehindMessagesAreNamed) {
  const std::function<void()> trailers = [this] {
    EXPECT_EQ(SubmitTrailers(session_, id_, 14, "late"), 0);
  };
  EXPECT_EQ(SubmitHead(session_, id_, net::Compression::kDeflate, Provider(trailers)), 0);
  EXPECT_EQ(Response().at("grpc-encoding"), "deflate");
  EXPECT_EQ(Response().at("grpc-status"), "14");
  EXPECT_EQ(Response().at("grpc-message"), "late");
}

TEST_F(ResponseHeadTest, RequestsThatAreNotGrpcGetAStatusOfHttp) {
  EXPECT_EQ(SubmitHttpStatus(session_, id_, 415), 0);
  EXPECT_EQ(Response(), (Fields{{":status", "415"}}));
}

}  // namespace
}  // namespace nereid::http2
