// SPDX-License-Identifier: Apache-2.0
#include "s3/credentials.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nereid::s3 {
namespace {

class AnAccount : public testing::Test {
 protected:
  AnAccount() {
    std::string path = (std::filesystem::temp_directory_path() / "s3-XXXXXX").string();
    home_ = ::mkdtemp(path.data());
    variables_["HOME"] = home_;
  }
  ~AnAccount() override { std::filesystem::remove_all(home_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = home_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  base::Result<Account> Find(std::string_view path = "s3://bucket/models") {
    return FindAccount(path, [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    });
  }

  std::filesystem::path home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(AnAccount, IsNoneWhereNothingIsSaid) {
  const auto account = Find();
  ASSERT_TRUE(account.ok());
  EXPECT_EQ(account->credentials.key_id, "");
  EXPECT_EQ(account->region, "us-east-1");
}

TEST_F(AnAccount, IsThatOfTheVariablesBeforeThatOfAProfile) {
  Write(".aws/credentials", "[default]\naws_access_key_id = P\naws_secret_access_key = Q\n");
  variables_["AWS_ACCESS_KEY_ID"] = "A";
  variables_["AWS_SECRET_ACCESS_KEY"] = "B";
  variables_["AWS_SESSION_TOKEN"] = "C";
  variables_["AWS_REGION"] = "eu-west-1";
  const auto account = Find();
  EXPECT_EQ(account->credentials.key_id, "A");
  EXPECT_EQ(account->credentials.secret, "B");
  EXPECT_EQ(account->credentials.session_token, "C");
  EXPECT_EQ(account->region, "eu-west-1");
  variables_["AWS_DEFAULT_REGION"] = "eu-west-2";
  EXPECT_EQ(Find()->region, "eu-west-2");
}

TEST_F(AnAccount, IsThatOfTheProfile) {
  Write(".aws/credentials",
        "# keys\n[default]\naws_access_key_id=P\naws_secret_access_key=Q\n\n"
        "[other]\naws_access_key_id = R\n aws_secret_access_key = no\n"
        "aws_secret_access_key = S=\r\n");
  Write(".aws/config", "[profile other]\nregion = us-west-2\ns3 =\n  region = no\n");
  EXPECT_EQ(Find()->credentials.key_id, "P");
  EXPECT_EQ(Find()->region, "us-east-1");
  variables_["AWS_PROFILE"] = "other";
  EXPECT_EQ(Find()->credentials.key_id, "R");
  EXPECT_EQ(Find()->credentials.secret, "S=");
  EXPECT_EQ(Find()->region, "us-west-2");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] =
      Write("elsewhere", "[other]\naws_access_key_id=T\naws_secret_access_key=U\n");
  EXPECT_EQ(Find()->credentials.key_id, "T");
}

TEST_F(AnAccount, IsTheOneWithTheLongestNameOfTheCredentialFile) {
  variables_["AWS_ACCESS_KEY_ID"] = "A";
  variables_["AWS_SECRET_ACCESS_KEY"] = "B";
  variables_["TRITON_CLOUD_CREDENTIAL_PATH"] = Write("cloud.json", R"({"s3": {
      "s3://bucket": {"key_id": "1", "secret_key": "s1", "region": "r1"},
      "s3://bucket/models": {"key_id": "2", "secret_key": "s2", "session_token": "t2"},
      "s3://buckets": {"key_id": "3", "secret_key": "s3"}}})");
  EXPECT_EQ(Find()->credentials.key_id, "2");
  EXPECT_EQ(Find()->credentials.session_token, "t2");
  EXPECT_EQ(Find("s3://bucket/x")->credentials.key_id, "1");
  EXPECT_EQ(Find("s3://bucket/x")->region, "r1");
  EXPECT_EQ(Find("s3://other").status().message(), "Cannot match credential for path  s3://other");
}

TEST_F(AnAccount, NeedsACredentialFileThatCanBeRead) {
  variables_["TRITON_CLOUD_CREDENTIAL_PATH"] = home_ / "missing";
  EXPECT_FALSE(Find().ok());
  variables_["TRITON_CLOUD_CREDENTIAL_PATH"] = Write("cloud.json", "{");
  EXPECT_FALSE(Find().ok());
}

}  // namespace
}  // namespace nereid::s3
