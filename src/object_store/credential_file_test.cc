// SPDX-License-Identifier: Apache-2.0
#include "object_store/credential_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"

namespace nereid::object_store {
namespace {

class ACredentialFile : public testing::Test {
 protected:
  ACredentialFile() : folder_(std::move(*base::MakeTemporaryFolder("test"))) {}
  ~ACredentialFile() override { std::filesystem::remove_all(folder_.path); }

  base::Result<std::optional<CredentialEntry>> Find(const std::string& text, const char* section,
                                                    std::string_view path) {
    const std::string file = folder_.path + "/cloud.json";
    std::ofstream(file) << text;
    return FindCredentialEntry(
        [file](const char* name) -> std::optional<std::string> {
          EXPECT_STREQ(name, "TRITON_CLOUD_CREDENTIAL_PATH");
          return file;
        },
        section, path);
  }

  const base::TemporaryFolder folder_;
};

// The form is that of Triton's documentation.
constexpr const char* kFile = R"({
  "gs": {"": "default.json", "gs://gcs-bucket-002": "second.json"},
  "s3": {"": {"secret_key": "S", "key_id": "K", "region": "R", "session_token": "", "profile": ""}},
  "as": {"as://account/container": {"account_str": "A", "account_key": "Q", "number": 3}}})";

TEST_F(ACredentialFile, HasTheEntryWithTheLongestName) {
  EXPECT_EQ((*Find(kFile, "gs", "gs://gcs-bucket-002/models"))->text, "second.json");
  EXPECT_EQ((*Find(kFile, "gs", "gs://another"))->text, "default.json");
  EXPECT_EQ((*Find(kFile, "s3", "s3://b"))->Field("key_id"), "K");
  const auto azure = Find(kFile, "as", "as://account/container/m");
  EXPECT_EQ((*azure)->Field("account_str"), "A");
  EXPECT_EQ((*azure)->Field("number"), "");
  EXPECT_EQ((*azure)->text, "");
}

TEST_F(ACredentialFile, SaysForWhichPathItHasNone) {
  EXPECT_EQ(Find(kFile, "as", "as://account/other").status().message(),
            "Cannot match credential for path  as://account/other");
  EXPECT_EQ(Find("{}", "gs", "gs://b").status().message(),
            "Cannot match credential for path  gs://b");
  EXPECT_FALSE(Find(R"({"gs": []})", "gs", "gs://b").ok());
  EXPECT_FALSE(Find(R"({"gs": {"": 3}})", "gs", "gs://b").ok());
}

TEST_F(ACredentialFile, IsRefusedWhereItIsNoJson) {
  for (const char* text : {"", "[]", "{", "{\"gs\": \"secret\""}) {
    const auto entry = Find(text, "gs", "gs://b");
    ASSERT_FALSE(entry.ok());
    EXPECT_EQ(entry.status().message().find("secret"), std::string_view::npos);
  }
}

TEST(NoCredentialFile, IsNoError) {
  const auto entry =
      FindCredentialEntry([](const char*) { return std::nullopt; }, "gs", "gs://bucket");
  ASSERT_TRUE(entry.ok());
  EXPECT_FALSE(entry->has_value());
}

}  // namespace
}  // namespace nereid::object_store
