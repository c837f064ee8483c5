// SPDX-License-Identifier: Apache-2.0
#include "azure/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http_client/testing/http_stub.h"
#include "object_store/testing/fake_environment.h"

namespace nereid::azure {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;
using testing::Not;

class AToken : public testing::Test {
 protected:
  StubRequest request_;
  StubReply reply_{200, {}, R"({"access_token": "T", "expires_in": "3599"})"};
  HttpStub server_{[this](const StubRequest& request) {
    request_ = request;
    return reply_;
  }};
  http_client::HttpClient client_;
};

TEST_F(AToken, IsGivenForASecret) {
  const auto token = FetchToken(client_, ClientSecret{"t", "c", "s/1", server_.endpoint()});
  ASSERT_TRUE(token.ok()) << token.status().ToString();
  EXPECT_EQ(token->value, "T");
  EXPECT_EQ(request_.target, "/t/oauth2/v2.0/token");
  EXPECT_EQ(request_.body,
            "client_id=c&client_secret=s%2F1&grant_type=client_credentials"
            "&scope=https%3A%2F%2Fstorage.azure.com%2F.default");
}

TEST_F(AToken, IsGivenForTheFileOfAWorkload) {
  const object_store::FakeEnvironment files;
  const WorkloadIdentity workload{"t", "c", files.Write("token", "a.b.c\n"), server_.endpoint()};
  ASSERT_TRUE(FetchToken(client_, workload).ok());
  EXPECT_EQ(request_.body,
            "client_assertion=a.b.c&client_assertion_type="
            "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_id=c"
            "&grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com%2F.default");
}

TEST_F(AToken, IsGivenByTheMachine) {
  const std::string url = server_.endpoint() + "/metadata/identity/oauth2/token";
  ASSERT_TRUE(FetchToken(client_, ManagedIdentity{url, "", "me"}).ok());
  EXPECT_EQ(request_.method, "GET");
  EXPECT_EQ(request_.target,
            "/metadata/identity/oauth2/token?api-version=2018-02-01"
            "&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=me");
  EXPECT_EQ(request_.headers.at("metadata"), "true");
  ASSERT_TRUE(FetchToken(client_, ManagedIdentity{url, "secret", ""}).ok());
  EXPECT_THAT(request_.target, HasSubstr("?api-version=2019-08-01&resource="));
  EXPECT_EQ(request_.headers.at("x-identity-header"), "secret");
}

TEST_F(AToken, IsRefusedWithTheReasonButNotWithTheSecret) {
  reply_ = {
      401, {}, R"({"error": "invalid_client", "error_description": "AADSTS7000215: Invalid."})"};
  const auto token = FetchToken(client_, ClientSecret{"t", "app", "my-secret", server_.endpoint()});
  EXPECT_THAT(token.status().message(),
              HasSubstr("'app', gives no token: HTTP status 401: invalid_client: AADSTS7000215"));
  EXPECT_THAT(token.status().message(), Not(HasSubstr("my-secret")));
}

TEST_F(AToken, IsEmptyWhereNoneIsNeeded) {
  EXPECT_EQ(FetchToken(client_, Anonymous{})->value, "");
  EXPECT_EQ(FetchToken(client_, SharedKey{"k"})->value, "");
}

}  // namespace
}  // namespace nereid::azure
