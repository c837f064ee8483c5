// SPDX-License-Identifier: Apache-2.0
#include "azure/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object_store/testing/fake_environment.h"

namespace nereid::azure {
namespace {

using testing::HasSubstr;
using testing::Not;

class AnAccount : public testing::Test {
 protected:
  base::Result<Account> Find(const std::string& path = "as://account/container/models") {
    return FindAccount(path, *ParseLocation(path), environment_.Get());
  }
  std::map<std::string, std::string>& variables() { return environment_.variables; }
  // The name of the kind of access.
  template <typename Kind>
  bool Has() {
    return std::holds_alternative<Kind>(Find()->access);
  }

  object_store::FakeEnvironment environment_;
};

TEST_F(AnAccount, IsThatOfThePathWithoutKeys) {
  const auto account = Find();
  ASSERT_TRUE(account.ok());
  EXPECT_EQ(account->name, "account");
  EXPECT_EQ(account->endpoint, "https://account.blob.core.windows.net");
  EXPECT_TRUE(std::holds_alternative<Anonymous>(account->access));
  EXPECT_EQ(Find("as://a.blob.core.windows.net/c")->endpoint, "https://a.blob.core.windows.net");
  EXPECT_EQ(Find("as://a.blob.core.chinacloudapi.cn/c")->endpoint,
            "https://a.blob.core.chinacloudapi.cn");
}

TEST_F(AnAccount, IsThatOfTritonsVariables) {
  variables()["AZURE_STORAGE_ACCOUNT"] = "other";
  variables()["AZURE_STORAGE_KEY"] = "c2VjcmV0";
  const auto account = Find();
  EXPECT_EQ(account->name, "other");
  EXPECT_EQ(account->endpoint, "https://other.blob.core.windows.net");
  EXPECT_EQ(std::get<SharedKey>(account->access).key, "secret");
  EXPECT_THAT(account->identity, Not(HasSubstr("secret")));
  EXPECT_THAT(account->identity, Not(HasSubstr("c2VjcmV0")));
  variables()["AZURE_STORAGE_KEY"] = "a key!";
  EXPECT_EQ(Find().status().message(), "the key of the storage account is not base64");
}

TEST_F(AnAccount, IsThatOfAConnectionStringUnlessAVariableSaysMore) {
  variables()["AZURE_STORAGE_CONNECTION_STRING"] =
      "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=c2VjcmV0cw==;"
      "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1/;";
  auto account = Find();
  EXPECT_EQ(account->name, "devstoreaccount1");
  EXPECT_EQ(account->endpoint, "http://127.0.0.1:10000/devstoreaccount1");
  EXPECT_EQ(std::get<SharedKey>(account->access).key, "secrets");
  variables()["AZURE_STORAGE_SERVICE_ENDPOINT"] = "https://elsewhere";
  EXPECT_EQ(Find()->endpoint, "https://elsewhere");
  variables()["AZURE_STORAGE_CONNECTION_STRING"] =
      "AccountName=a;SharedAccessSignature=?sv=1&sig=x%3D;EndpointSuffix=core.usgovcloudapi.net";
  variables().erase("AZURE_STORAGE_SERVICE_ENDPOINT");
  account = Find();
  EXPECT_EQ(account->endpoint, "https://a.blob.core.usgovcloudapi.net");
  EXPECT_EQ(std::get<SharedAccessSignature>(account->access).query, "sv=1&sig=x%3D");
}

TEST_F(AnAccount, IsTheEntryOfTritonsFileAlone) {
  variables()["AZURE_STORAGE_ACCOUNT"] = "not this one";
  variables()["AZURE_STORAGE_KEY"] = "bm8=";
  variables()["TRITON_CLOUD_CREDENTIAL_PATH"] = environment_.Write("cloud.json", R"({"as": {
      "": {"account_str": "general", "account_key": "c2VjcmV0"},
      "as://account/public": {},
      "as://account/managed": {"account_str": "m", "auth_type": "managed_identity",
                               "client_id": "me"}}})");
  EXPECT_EQ(Find()->name, "general");
  EXPECT_EQ(std::get<SharedKey>(Find()->access).key, "secret");
  const auto public_one = Find("as://account/public/x");
  EXPECT_EQ(public_one->name, "account");
  EXPECT_TRUE(std::holds_alternative<Anonymous>(public_one->access));
  const auto managed = std::get<ManagedIdentity>(Find("as://account/managed")->access);
  EXPECT_EQ(managed.client_id, "me");
  EXPECT_EQ(managed.endpoint, "http://169.254.169.254/metadata/identity/oauth2/token");
}

TEST_F(AnAccount, HasTheIdentityThatTheEnvironmentWasGiven) {
  variables()["AZURE_TENANT_ID"] = "t";
  variables()["AZURE_CLIENT_ID"] = "c";
  EXPECT_TRUE(Has<Anonymous>());
  variables()["AZURE_FEDERATED_TOKEN_FILE"] = "/token";
  EXPECT_EQ(std::get<WorkloadIdentity>(Find()->access).authority,
            "https://login.microsoftonline.com");
  variables()["AZURE_AUTHORITY_HOST"] = "login.microsoftonline.us/";
  variables()["AZURE_CLIENT_SECRET"] = "s";
  EXPECT_EQ(std::get<ClientSecret>(Find()->access).authority, "https://login.microsoftonline.us");
  variables()["AZURE_STORAGE_KEY"] = "c2VjcmV0";
  EXPECT_TRUE(Has<SharedKey>());
}

TEST_F(AnAccount, FollowsTheDefaultChainOnRequest) {
  variables()["AZURE_STORAGE_AUTH_TYPE"] = "default";
  EXPECT_TRUE(Has<ManagedIdentity>());
  variables()["AZURE_TENANT_ID"] = "t";
  variables()["AZURE_CLIENT_ID"] = "c";
  variables()["AZURE_CLIENT_SECRET"] = "s";
  EXPECT_TRUE(Has<ClientSecret>());
  variables()["AZURE_STORAGE_AUTH_TYPE"] = "managed_identity";
  variables()["IDENTITY_ENDPOINT"] = "http://127.0.0.1:41741/msi/token";
  variables()["IDENTITY_HEADER"] = "h";
  EXPECT_EQ(std::get<ManagedIdentity>(Find()->access).header, "h");
  variables()["AZURE_STORAGE_AUTH_TYPE"] = "magic";
  EXPECT_THAT(Find().status().message(), HasSubstr("unknown Azure authentication type 'magic'"));
}

TEST_F(AnAccount, SendsNoTokenWithoutEncryption) {
  variables()["AZURE_STORAGE_AUTH_TYPE"] = "managed_identity";
  variables()["AZURE_STORAGE_SERVICE_ENDPOINT"] = "http://example.test/account";
  EXPECT_THAT(Find().status().message(), HasSubstr("tokens are not sent without encryption"));
  variables()["AZURE_STORAGE_SERVICE_ENDPOINT"] = "http://127.0.0.1:10000/account";
  EXPECT_TRUE(Find().ok());
}

}  // namespace
}  // namespace nereid::azure
