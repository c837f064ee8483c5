// SPDX-License-Identifier: Apache-2.0
#include "object_store/token_request.h"

#include <gtest/gtest.h>

#include "http_client/testing/http_stub.h"

namespace nereid::object_store {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;

constexpr TokenRequestOptions kQuick{
    .timeout = std::chrono::milliseconds(5000),
    .retry = {.attempts = 3, .first_pause = std::chrono::milliseconds(1)}};

class ATokenServer : public testing::Test {
 protected:
  base::Result<Expiring<std::string>> Ask() {
    return AskForBearerToken(client_,
                             FormRequest(server_.endpoint() + "/token", {{"secret", "my secret"}}),
                             "the server", kQuick);
  }

  std::vector<StubReply> replies_;  // the last one again and again
  size_t count_ = 0;
  std::string body_;
  HttpStub server_{[this](const StubRequest& request) {
    body_ = request.body;
    return replies_.at(std::min(count_++, replies_.size() - 1));
  }};
  http_client::HttpClient client_;
};

TEST_F(ATokenServer, GivesATokenForAWhile) {
  replies_ = {{200, {}, R"({"access_token": "T", "expires_in": 3599, "token_type": "Bearer"})"}};
  const auto token = Ask();
  ASSERT_TRUE(token.ok()) << token.status().ToString();
  EXPECT_EQ(token->value, "T");
  EXPECT_EQ(token->lifetime, std::chrono::seconds(3599));
  EXPECT_EQ(body_, "secret=my%20secret");
  // Azure writes numbers as strings, and others write none.
  replies_ = {{200, {}, R"({"access_token": "T", "expires_in": "86399"})"}};
  EXPECT_EQ(Ask()->lifetime, std::chrono::seconds(86399));
  replies_ = {{200, {}, R"({"access_token": "T"})"}};
  EXPECT_EQ(Ask()->lifetime, std::chrono::seconds(300));
}

TEST_F(ATokenServer, IsAskedAgainAfterFailuresThatMayPass) {
  replies_ = {{503}, {429}, {200, {}, R"({"access_token": "T", "expires_in": 60})"}};
  EXPECT_EQ(Ask()->value, "T");
  EXPECT_EQ(count_, 3u);
  replies_ = {{500}};
  EXPECT_EQ(Ask().status().message(), "the server gives no token: HTTP status 500");
  EXPECT_EQ(count_, 6u);
}

TEST_F(ATokenServer, IsQuotedWithItsReasonInOneLine) {
  replies_ = {
      {400, {}, R"({"error": "invalid_grant", "error_description": "No such user\r\nat x"})"}};
  EXPECT_EQ(Ask().status().message(),
            "the server gives no token: HTTP status 400: invalid_grant: No such user");
  EXPECT_EQ(count_, 1u);
  replies_ = {{403, {}, R"({"error": {"status": "PERMISSION_DENIED", "message": "denied"}})"}};
  EXPECT_EQ(Ask().status().message(),
            "the server gives no token: HTTP status 403: PERMISSION_DENIED: denied");
}

TEST_F(ATokenServer, IsNotBelievedWithoutAUsableToken) {
  for (const char* body : {"", "{}", "[]", "my token", R"({"access_token": ""})",
                           R"({"access_token": 3})", R"({"access_token": "a\r\nb: c"})"}) {
    replies_ = {{200, {}, body}};
    const auto token = Ask();
    if (token.ok()) {
      EXPECT_EQ(token->value, "3");  // harmless
      continue;
    }
    EXPECT_EQ(token.status().message(), "the server replied without a token");
  }
  replies_ = {{200, {}, std::string(2 << 20, 'x')}};
  EXPECT_FALSE(Ask().ok());
}

TEST(AUtcTime, IsReadWithFractionsAndRefusedOtherwise) {
  EXPECT_EQ(ParseUtcTime("2026-01-31T12:34:56.250Z"), 1769862896'250'000'000);
  EXPECT_EQ(ParseUtcTime("2026-01-31T12:34:56+00:00"), 1769862896'000'000'000);
  for (const char* text : {"", "2026-01-31", "2026-01-31T12:34:56", "2026-01-31T12:34:56+02:00",
                           "9999-01-31T12:34:56Z", "1900-01-31T12:34:56Z", "yesterday"}) {
    EXPECT_EQ(ParseUtcTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace nereid::object_store
