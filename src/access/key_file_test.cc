// SPDX-License-Identifier: Apache-2.0
#include "access/key_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "access/crypto.h"
#include "base/temporary_folder.h"

namespace nereid::access {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KeyFiles : public testing::Test {
 protected:
  KeyFiles() : folder_(base::MakeTemporaryFolder("keys").value()) {}
  ~KeyFiles() override { std::filesystem::remove_all(folder_.path); }

  std::string file() const { return folder_.path + "/keys.json"; }
  std::string Text() const {
    std::stringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
  static KeyEntry Entry(const std::string& id) {
    return {.id = id, .scopes = {"infer"}, .models = {}, .expires = {}, .created = {}};
  }

  const base::TemporaryFolder folder_;
};

TEST_F(KeyFiles, HaveTheHashOfAKeyAndNotTheKey) {
  const base::Result<std::string> key = AddKey(file(), Entry("ci"));
  ASSERT_TRUE(key.ok()) << key.status().message();
  EXPECT_THAT(Text(), testing::Not(HasSubstr(key->substr(4))));
  EXPECT_THAT(Text(), HasSubstr(ToHex(HashOf(*key))));
}

TEST_F(KeyFiles, AreReadableByTheirOwnerOnly) {
  ASSERT_TRUE(AddKey(file(), Entry("ci")).ok());
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod(file().c_str(), 0640), 0);
  ASSERT_TRUE(AddKey(file(), Entry("other")).ok());
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(KeyFiles, ListTheirKeys) {
  KeyEntry entry{.id = "ci",
                 .scopes = {"infer", "metrics"},
                 .models = {"res*"},
                 .expires = "2027-01-31",
                 .created = {}};
  ASSERT_TRUE(AddKey(file(), entry).ok());
  ASSERT_TRUE(AddKey(file(), Entry("all")).ok());
  const auto keys = ListKeys(file());
  ASSERT_TRUE(keys.ok());
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].id, "ci");
  EXPECT_THAT((*keys)[0].scopes, ElementsAre("infer", "metrics"));
  EXPECT_THAT((*keys)[0].models, ElementsAre("res*"));
  EXPECT_EQ((*keys)[0].expires, "2027-01-31");
  EXPECT_EQ((*keys)[0].created.size(), 20u);
  EXPECT_TRUE((*keys)[1].models.empty());
}

TEST_F(KeyFiles, KeepEverythingElse) {
  std::ofstream(file()) << R"({"anonymous": {"scopes": ["metrics"]}, "protect_health": true})";
  ASSERT_TRUE(AddKey(file(), Entry("ci")).ok());
  ASSERT_TRUE(RevokeKey(file(), "ci").ok());
  EXPECT_THAT(Text(), HasSubstr("\"protect_health\": true"));
  EXPECT_THAT(Text(), HasSubstr("\"metrics\""));
  EXPECT_TRUE(ListKeys(file())->empty());
}

TEST_F(KeyFiles, RefuseWhatAServerWouldRefuse) {
  ASSERT_TRUE(AddKey(file(), Entry("ci")).ok());
  EXPECT_EQ(AddKey(file(), Entry("ci")).status().code(), base::StatusCode::kAlreadyExists);
  EXPECT_EQ(RevokeKey(file(), "other").code(), base::StatusCode::kNotFound);
  const std::string before = Text();
  EXPECT_FALSE(AddKey(file(), Entry("a b")).ok());
  KeyEntry wrong = Entry("x");
  wrong.scopes = {"everything"};
  EXPECT_THAT(std::string(AddKey(file(), wrong).status().message()), HasSubstr("no scope"));
  wrong = Entry("x");
  wrong.expires = "soon";
  EXPECT_FALSE(AddKey(file(), wrong).ok());
  EXPECT_EQ(Text(), before);
  std::ofstream(file()) << "{";
  EXPECT_FALSE(AddKey(file(), Entry("x")).ok());
  EXPECT_FALSE(ListKeys(file()).ok());
  EXPECT_EQ(Text(), "{");
}

TEST_F(KeyFiles, StayLinksIfTheyAreLinks) {
  std::ofstream(folder_.path + "/real.json") << "{}";
  std::filesystem::create_symlink("real.json", file());
  ASSERT_TRUE(AddKey(file(), Entry("ci")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(file()));
  EXPECT_EQ(ListKeys(folder_.path + "/real.json")->size(), 1u);
}

}  // namespace
}  // namespace nereid::access
