// SPDX-License-Identifier: Apache-2.0
#include "gcs/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object_store/testing/fake_environment.h"

namespace nereid::gcs {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kServiceAccount =
    R"({"type": "service_account", "client_email": "me@project", "private_key_id": "id",
        "private_key": "my secret"})";
constexpr const char* kUser =
    R"({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"})";

class AnAccount : public testing::Test {
 protected:
  base::Result<Account> Find(const std::string& path = "gs://bucket/models",
                             bool is_emulator = false) {
    return FindAccount(path, environment_.Get(), is_emulator);
  }
  std::map<std::string, std::string>& variables() { return environment_.variables; }

  object_store::FakeEnvironment environment_;
};

TEST_F(AnAccount, IsThatOfTheMachineWhereNothingIsSaid) {
  EXPECT_EQ(std::get<MachineAccount>(Find()->source).host, "169.254.169.254");
  variables()["GCE_METADATA_HOST"] = "127.0.0.1:8080";
  EXPECT_EQ(std::get<MachineAccount>(Find()->source).host, "127.0.0.1:8080");
  EXPECT_TRUE(std::holds_alternative<Anonymous>(Find("gs://b", true)->source));
}

TEST_F(AnAccount, IsThatOfTheVariableBeforeThatOfTheLogin) {
  environment_.Write(".config/gcloud/application_default_credentials.json", kUser);
  EXPECT_EQ(std::get<AuthorizedUser>(Find()->source).refresh_token, "r");
  EXPECT_EQ(std::get<AuthorizedUser>(Find()->source).token_uri,
            "https://oauth2.googleapis.com/token");
  variables()["GOOGLE_APPLICATION_CREDENTIALS"] = environment_.Write("key.json", kServiceAccount);
  const auto account = Find("gs://b", true);
  EXPECT_EQ(std::get<ServiceAccount>(account->source).email, "me@project");
  EXPECT_EQ(std::get<ServiceAccount>(account->source).key_id, "id");
  EXPECT_THAT(account->identity, Not(HasSubstr("my secret")));
}

TEST_F(AnAccount, IsTheOneWithTheLongestNameOfTritonsFile) {
  const std::string first = environment_.Write("first.json", kUser);
  const std::string second = environment_.Write("second.json", kServiceAccount);
  variables()["TRITON_CLOUD_CREDENTIAL_PATH"] =
      environment_.Write("cloud.json", R"({"gs": {"gs://b": ")" + first + R"(", "gs://bucket": ")" +
                                           second + R"(", "gs://public": ""}})");
  EXPECT_TRUE(std::holds_alternative<AuthorizedUser>(Find("gs://b2/x")->source));
  EXPECT_TRUE(std::holds_alternative<ServiceAccount>(Find()->source));
  EXPECT_TRUE(std::holds_alternative<MachineAccount>(Find("gs://public")->source));
  EXPECT_EQ(Find("gs://other").status().message(), "Cannot match credential for path  gs://other");
}

TEST_F(AnAccount, NeedsAFileThatCanBeRead) {
  variables()["GOOGLE_APPLICATION_CREDENTIALS"] = environment_.home() + "/missing.json";
  EXPECT_THAT(Find().status().message(), HasSubstr("missing.json"));
}

TEST(CredentialsOfGoogle, AreRefusedWithTheFieldThatIsWrong) {
  for (const auto& [json, reason] : std::map<std::string, std::string>{
           {"", "not a JSON object"},
           {"{}", "have the type ''"},
           {R"({"type": "service_account", "private_key": "secret"})", "lack 'client_email'"},
           {R"({"type": "service_account", "client_email": "m"})", "lack 'private_key'"},
           {R"({"type": "authorized_user", "client_id": "c", "client_secret": "secret"})",
            "lack 'refresh_token'"},
           {R"({"type": "external_account", "audience": "a", "subject_token_type": "t",
                "credential_source": {"executable": {"command": "secret"}}})",
            "not a program"},
           {R"({"type": "external_account", "subject_token_type": "t",
                "credential_source": {"file": "secret"}})",
            "lack 'audience'"},
           {R"({"type": "impersonated_service_account",
                "source_credentials": {"type": "authorized_user"}})",
            "lack 'service_account_impersonation_url'"}}) {
    const auto account = ParseAccount(json);
    ASSERT_FALSE(account.ok()) << json;
    EXPECT_THAT(account.status().message(), HasSubstr(reason));
    EXPECT_THAT(account.status().message(), Not(HasSubstr("secret")));
  }
}

TEST(CredentialsOfGoogle, MayBeThoseOfAnotherIssuer) {
  const auto account = ParseAccount(R"({"type": "external_account", "audience": "//iam/x",
      "subject_token_type": "urn:jwt", "token_url": "https://sts/v1/token",
      "service_account_impersonation_url": "https://iam/generate",
      "credential_source": {"url": "http://h/token", "headers": {"Metadata": "True"},
        "format": {"type": "json", "subject_token_field_name": "access_token"}}})");
  ASSERT_TRUE(account.ok()) << account.status().ToString();
  const auto& external = std::get<ExternalAccount>(account->source);
  EXPECT_EQ(external.source_url, "http://h/token");
  EXPECT_EQ(external.source_headers.at("Metadata"), "True");
  EXPECT_EQ(external.source_field, "access_token");
  EXPECT_EQ(account->impersonation_url, "https://iam/generate");
}

}  // namespace
}  // namespace nereid::gcs
