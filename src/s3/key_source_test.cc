// SPDX-License-Identifier: Apache-2.0
#include "s3/key_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/temporary_folder.h"
#include "http_client/testing/http_stub.h"

namespace nereid::s3 {
namespace {

using http_client::HttpClient;
using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kMachineReply =
    R"({"Code": "Success", "AccessKeyId": "K", "SecretAccessKey": "S", "Token": "T",
        "Expiration": "2200-01-01T00:00:00Z"})";

class AKeySource : public testing::Test {
 protected:
  AKeySource()
      : folder_(std::move(*base::MakeTemporaryFolder("test"))),
        server_([this](const StubRequest& request) {
          requests_.push_back(request);  // one at a time
          const auto found = replies_.find(request.method + " " + request.target);
          return found == replies_.end() ? StubReply{404} : found->second;
        }) {}
  ~AKeySource() override { std::filesystem::remove_all(folder_.path); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  KeySource Find(const std::string& region = "eu-west-1", const ProfileIdentity& profile = {}) {
    return FindKeySource(
        [this](const char* name) -> std::optional<std::string> {
          const auto found = variables_.find(name);
          if (found == variables_.end()) return std::nullopt;
          return found->second;
        },
        region, profile);
  }

  const base::TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
  std::vector<StubRequest> requests_;
  std::map<std::string, StubReply> replies_;
  HttpStub server_;
  HttpClient client_;
};

TEST_F(AKeySource, IsTheFirstThatIsConfigured) {
  EXPECT_EQ(std::get<MachineKeys>(Find()).endpoint, "http://169.254.169.254");
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPv6";
  EXPECT_EQ(std::get<MachineKeys>(Find()).endpoint, "http://[fd00:ec2::254]");
  variables_["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Find()));
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://169.254.170.23/v1/credentials";
  EXPECT_EQ(std::get<ContainerKeys>(Find()).url, "http://169.254.170.23/v1/credentials");
  variables_["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/keys";
  EXPECT_EQ(std::get<ContainerKeys>(Find()).url, "http://169.254.170.2/keys");
  const ProfileIdentity profile{.role_arn = "arn:p", .token_file = "/p", .session_name = "s"};
  EXPECT_EQ(std::get<WebIdentity>(Find("cn-north-1", profile)),
            (WebIdentity{"arn:p", "/p", "s", "https://sts.cn-north-1.amazonaws.com.cn"}));
  variables_["AWS_ROLE_ARN"] = "arn:v";
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/v";
  EXPECT_EQ(std::get<WebIdentity>(Find("eu-west-1", profile)),
            (WebIdentity{"arn:v", "/v", "nereid", "https://sts.eu-west-1.amazonaws.com"}));
}

TEST_F(AKeySource, ExchangesAWebIdentityForKeys) {
  variables_["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = Write("token", "a.b+c\n");
  variables_["AWS_ENDPOINT_URL_STS"] = server_.endpoint() + "/";
  replies_["POST /"].body =
      R"(<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>K</AccessKeyId>
        <SecretAccessKey>S</SecretAccessKey><SessionToken>T</SessionToken>
        <Expiration>2200-01-01T00:00:00Z</Expiration></Credentials>
        </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>)";
  const auto keys = FetchKeys(client_, Find());
  ASSERT_TRUE(keys.ok()) << keys.status().ToString();
  EXPECT_EQ(keys->value.key_id, "K");
  EXPECT_EQ(keys->value.secret, "S");
  EXPECT_EQ(keys->value.session_token, "T");
  EXPECT_GT(keys->lifetime, std::chrono::years(100));
  EXPECT_EQ(requests_.at(0).body,
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"
            "&RoleSessionName=nereid&Version=2011-06-15&WebIdentityToken=a.b%2Bc");
}

TEST_F(AKeySource, SaysWhyAWebIdentityGivesNothingWithoutItsToken) {
  variables_["AWS_ROLE_ARN"] = "arn:r";
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder_.path + "/missing";
  variables_["AWS_ENDPOINT_URL_STS"] = server_.endpoint();
  EXPECT_THAT(FetchKeys(client_, Find()).status().ToString(), HasSubstr("missing"));
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = Write("token", "my-secret-token");
  replies_["POST /"] = {403, {}, "<Error>my-secret-token is refused</Error>"};
  const std::string refused = FetchKeys(client_, Find()).status().ToString();
  EXPECT_THAT(refused, HasSubstr("gives no keys for the role 'arn:r': HTTP status 403"));
  EXPECT_THAT(refused, Not(HasSubstr("my-secret-token")));
  for (const char* body : {"", "<x/>", "no XML", "{}"}) {
    replies_["POST /"] = {200, {}, body};
    EXPECT_FALSE(FetchKeys(client_, Find()).ok()) << body;
  }
}

TEST_F(AKeySource, AsksTheMetadataServiceOfTheMachine) {
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_.endpoint() + "/";
  const std::string roles = "GET /latest/meta-data/iam/security-credentials/";
  replies_["PUT /latest/api/token"].body = "session";
  replies_[roles].body = "role name\n";
  replies_[roles + "role%20name"].body = kMachineReply;
  const auto keys = FetchKeys(client_, Find());
  ASSERT_TRUE(keys.ok()) << keys.status().ToString();
  EXPECT_EQ(keys->value.key_id, "K");
  EXPECT_EQ(requests_.at(0).headers.at("x-aws-ec2-metadata-token-ttl-seconds"), "300");
  EXPECT_EQ(requests_.at(1).headers.at("x-aws-ec2-metadata-token"), "session");
  EXPECT_EQ(requests_.at(2).headers.at("x-aws-ec2-metadata-token"), "session");
}

TEST_F(AKeySource, LeavesRequestsUnsignedOnAMachineWithoutARole) {
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_.endpoint();
  auto keys = FetchKeys(client_, Find());  // no service there
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->value.key_id, "");
  EXPECT_EQ(keys->lifetime, std::chrono::minutes(10));
  replies_["PUT /latest/api/token"].body = "session";
  keys = FetchKeys(client_, Find());  // no role
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->value.key_id, "");
}

TEST_F(AKeySource, GivesTheSameKeysWhileTheMetadataServiceOfTheMachineDoesNotRespond) {
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server_.endpoint();
  const std::string roles = "GET /latest/meta-data/iam/security-credentials/";
  replies_["PUT /latest/api/token"].body = "session";
  replies_[roles].body = "role";
  replies_[roles + "role"].body = kMachineReply;
  base::TimePoint now = std::chrono::steady_clock::now();
  object_store::Renewed<Credentials> keys([this] { return FetchKeys(client_, Find()); },
                                          [&now] { return now; });
  ASSERT_EQ(keys.Get()->key_id, "K");
  replies_["PUT /latest/api/token"] = {400};
  now += std::chrono::years(1) - std::chrono::minutes(4);  // the longest that keys are kept
  EXPECT_EQ(keys.Get()->key_id, "K");
  now += std::chrono::minutes(5);
  EXPECT_THAT(keys.Get().status().message(), HasSubstr("does not respond: HTTP status 400"));
  replies_["PUT /latest/api/token"] = {200, {}, "session"};
  replies_.erase(roles);
  EXPECT_EQ(keys.Get().status().message(), "this machine has no role");
}

TEST_F(AKeySource, AsksTheAgentOfTheContainerWithTheAuthorizationOfTheMoment) {
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server_.endpoint() + "/keys";
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = Write("token", "first\n");
  replies_["GET /keys"].body = kMachineReply;
  ASSERT_TRUE(FetchKeys(client_, Find()).ok());
  Write("token", "second\n");
  ASSERT_TRUE(FetchKeys(client_, Find()).ok());
  EXPECT_EQ(requests_.at(0).headers.at("authorization"), "first");
  EXPECT_EQ(requests_.at(1).headers.at("authorization"), "second");
}

TEST_F(AKeySource, SendsNoAuthorizationToStrangersAndNoLineEnds) {
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "token";
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.test/keys";
  EXPECT_THAT(FetchKeys(client_, Find()).status().message(), HasSubstr("'example.test'"));
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server_.endpoint() + "/keys";
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "a\r\nb: c";
  EXPECT_FALSE(FetchKeys(client_, Find()).ok());
  EXPECT_TRUE(requests_.empty());
}

TEST_F(AKeySource, HasANameWithoutSecrets) {
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1/keys";
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "secret";
  const std::string name = NameOf(Find());
  EXPECT_THAT(name, HasSubstr("http://127.0.0.1/keys"));
  EXPECT_THAT(name, Not(HasSubstr("secret")));
  variables_["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "another";
  EXPECT_NE(NameOf(Find()), name);
}

}  // namespace
}  // namespace nereid::s3
