// SPDX-License-Identifier: Apache-2.0
#include "repository/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace nereid::repository {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PrivateFolder, HoldsTheFilesAndGoesWithItsLastUser) {
  fs::path path;
  {
    const auto folder = PrivateFolder::Create({{"1/model.bin", std::string("a\0b", 3)},
                                               {"1/../labels.txt", "l"},
                                               {"/2//./model.bin", ""}});
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    path = (*folder)->path();
    EXPECT_EQ(Read(path / "1/model.bin"), std::string("a\0b", 3));
    EXPECT_EQ(Read(path / "labels.txt"), "l");
    EXPECT_TRUE(fs::is_empty(path / "2/model.bin"));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

// S01: nothing is written outside, whatever paths the client chooses.
TEST(PrivateFolder, RefusesPathsThatLeaveItS01) {
  for (const char* path : {"../x", "1/../../x", "..", "", "/", ".", "1/", "a/..", "/../x"}) {
    const auto folder = PrivateFolder::Create({{path, "x"}});
    ASSERT_FALSE(folder.ok()) << path;
    EXPECT_THAT(std::string(folder.status().message()),
                testing::HasSubstr("must stay within model directory"));
  }
  EXPECT_FALSE(PrivateFolder::Create({{std::string("a\0b", 3), "x"}}).ok());
  // A name that is too long, a file in place of a folder, a folder in place of a file.
  EXPECT_FALSE(PrivateFolder::Create({{std::string(256, 'x'), "x"}}).ok());
  EXPECT_FALSE(PrivateFolder::Create({{"a", "x"}, {"a/b", "x"}}).ok());
  EXPECT_FALSE(PrivateFolder::Create({{"a/b", "x"}, {"a", "x"}}).ok());
}

}  // namespace
}  // namespace nereid::repository
