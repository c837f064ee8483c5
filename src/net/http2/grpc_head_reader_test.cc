// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_head_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "http2/testing/client.h"

namespace nereid::http2 {
namespace {

using Headers = TestClient::Headers;

// Reads heads as nghttp2 decodes them, with a header table that persists between them.
class GrpcHeadReaderTest : public testing::Test {
 protected:
  GrpcHeadReaderTest() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame*, void* self) {
          static_cast<GrpcHeadReaderTest*>(self)->reader_.Begin();
          return 0;
        });
    nghttp2_session_callbacks_set_on_header_callback2(
        callbacks, [](nghttp2_session*, const nghttp2_frame*, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* self) {
          static_cast<GrpcHeadReaderTest*>(self)->reader_.Add(name, value);
          return 0;
        });
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_session_server_new2(&session_, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
  }
  ~GrpcHeadReaderTest() override { nghttp2_session_del(session_); }

  std::shared_ptr<const GrpcHead> Read(const Headers& headers) {
    client_.Call(headers, "");
    const std::string bytes = client_.TakeOutput();
    nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
    return reader_.End();
  }
  static Headers Call(const Headers& more = {}) { return TestClient::CallHeaders("/a/b", more); }

  TestClient client_;
  nghttp2_session* session_ = nullptr;
  GrpcHeadReader reader_{1000};
};

TEST_F(GrpcHeadReaderTest, PicksOutWhatGrpcNeeds) {
  const auto head = Read(Call({{"grpc-encoding", "gzip"},
                               {"grpc-accept-encoding", "identity,deflate"},
                               {"content-length", "17"},
                               {"custom", "value"}}));
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->path(), "/a/b");
  EXPECT_TRUE(head->is_post());
  EXPECT_TRUE(head->has_grpc_type());
  EXPECT_EQ(head->encoding(), net::Compression::kGzip);
  EXPECT_EQ(head->accepted(), net::Compression::kDeflate);
  EXPECT_EQ(head->content_length(), 17);
  EXPECT_EQ(head->Find("custom"), "value");
  EXPECT_EQ(head->Find("other"), "");
  EXPECT_EQ(head->count(), 6u);  // without pseudo-fields
  EXPECT_EQ(head->at(0), std::pair(std::string_view("te"), std::string_view("trailers")));
}

TEST_F(GrpcHeadReaderTest, NotesWhoAsksForTheLoad) {
  EXPECT_FALSE(Read(Call())->wants_load());
  const auto head = Read(Call({{"endpoint-load-metrics-format", "bin"}}));
  EXPECT_TRUE(head->wants_load());
  EXPECT_EQ(head->Find("endpoint-load-metrics-format"), "bin");
  EXPECT_FALSE(Read(Call())->wants_load());
}

TEST_F(GrpcHeadReaderTest, DetectsRequestsThatAreNotGrpc) {
  EXPECT_FALSE(Read(Call({{":method", "PUT"}}))->is_post());
  EXPECT_FALSE(Read(Call({{"content-type", "text/html"}}))->has_grpc_type());
  EXPECT_EQ(Read(Call({{"grpc-encoding", "snappy"}}))->encoding(), std::nullopt);
  EXPECT_EQ(Read(Call())->content_length(), -1);
}

TEST_F(GrpcHeadReaderTest, ARequestWithTheHeadersOfTheLastSharesItsHead) {
  const auto first = Read(Call());
  EXPECT_EQ(Read(Call()), first);
  EXPECT_EQ(Read(Call({{"grpc-timeout", "5S"}})), first);
  EXPECT_EQ(reader_.timeout(), std::chrono::seconds(5));
  EXPECT_EQ(Read(Call()), first);
  EXPECT_EQ(reader_.timeout(), std::nullopt);
  const auto other = Read(Call({{"custom", "value"}}));
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other, first);
  EXPECT_EQ(other->Find("custom"), "value");
  const auto shorter = Read(Call());
  ASSERT_NE(shorter, nullptr);
  EXPECT_EQ(shorter->Find("custom"), "");
}

TEST_F(GrpcHeadReaderTest, ATimeoutIsNotAFieldOfTheHead) {
  const auto head = Read(Call({{"grpc-timeout", "20m"}}));
  EXPECT_EQ(head->Find("grpc-timeout"), "");
  EXPECT_EQ(reader_.timeout(), std::chrono::milliseconds(20));
  Read(Call({{"grpc-timeout", "soon"}}));
  EXPECT_EQ(reader_.timeout(), std::nullopt);
}

TEST_F(GrpcHeadReaderTest, RefusesWhatHttp2Forbids) {
  const Headers malformed[] = {
      {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}},  // no authority
      {{":method", "POST"}, {":scheme", "http"}, {":authority", "t"}},
      {{":method", "POST"}, {":scheme", "http"}, {":authority", "t"}, {":path", "relative"}},
      Call({{":path", ""}}),
      Call({{"connection", "close"}}),
      Call({{"te", "gzip"}}),
      Call({{"content-length", "-1"}}),
      Call({{"content-length", "99999999999999999999"}}),
      Call({{":late", "pseudo-field"}}),
  };
  for (const Headers& headers : malformed) {
    EXPECT_EQ(Read(headers), nullptr) << headers.back().first << ": " << headers.back().second;
    EXPECT_NE(Read(Call()), nullptr);
  }
}

TEST_F(GrpcHeadReaderTest, PassesOverValuesWithForbiddenCharacters) {
  const auto head = Read(Call({{"custom", "a\nb"}, {"other", "fine"}}));
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->Find("custom"), "");
  EXPECT_EQ(head->Find("other"), "fine");
}

TEST_F(GrpcHeadReaderTest, DetectsHeadsThatAreTooLarge) {
  EXPECT_NE(Read(Call({{"custom", std::string(500, 'x')}})), nullptr);
  EXPECT_FALSE(reader_.is_too_large());
  EXPECT_NE(Read(Call({{"custom", std::string(900, 'x')}})), nullptr);
  EXPECT_TRUE(reader_.is_too_large());
  // Even if only the timeout is new.
  std::string filler(1000 - 32 - 6, 'x');
  for (const auto& [name, value] : Call())
    filler.resize(filler.size() - 32 - name.size() - value.size());
  EXPECT_NE(Read(Call({{"custom", filler}})), nullptr);
  EXPECT_FALSE(reader_.is_too_large());
  EXPECT_NE(Read(Call({{"custom", filler}, {"grpc-timeout", "1S"}})), nullptr);
  EXPECT_TRUE(reader_.is_too_large());
}

}  // namespace
}  // namespace nereid::http2
