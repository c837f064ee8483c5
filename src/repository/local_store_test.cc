// SPDX-License-Identifier: Apache-2.0
// Folders on a file system that has trouble. The functions of the C library are replaced, because
// no file system fails on demand.
#include "repository/local_store.h"

#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace {

int entries_until_trouble = -1;  // of a folder; -1: none
std::string troubled;            // a path that cannot be examined; empty: none

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
  static auto* const real = Real<dirent*(DIR*)>("readdir");
  if (entries_until_trouble == 0) {
    errno = EIO;
    return nullptr;
  }
  if (entries_until_trouble > 0) --entries_until_trouble;
  return real(folder);
}

extern "C" int stat(const char* path, struct stat* status) noexcept {
  static auto* const real = Real<int(const char*, struct stat*)>("stat");
  if (!troubled.empty() && troubled == path) {
    errno = ESTALE;
    return -1;
  }
  return real(path, status);
}

namespace nereid::repository {
namespace {

namespace fs = std::filesystem;

class TroubledFolder : public testing::Test {
 protected:
  TroubledFolder() : folder_(base::MakeTemporaryFolder("local-store").value()) {
    fs::create_directories(folder_.path + "/model");
    fs::create_directory_symlink(folder_.path + "/model", folder_.path + "/link");
    fs::create_directory_symlink(folder_.path + "/nowhere", folder_.path + "/dangling");
  }
  ~TroubledFolder() override {
    entries_until_trouble = -1;
    troubled.clear();
    fs::remove_all(folder_.path);
  }

  const base::TemporaryFolder folder_;
  const LocalStore store_;
};

TEST_F(TroubledFolder, IsListedWholeOrNotAtAll) {
  const auto whole = store_.List(folder_.path);
  ASSERT_TRUE(whole.ok());
  EXPECT_THAT(*whole, testing::ElementsAre(Entry{"link", true}, Entry{"model", true}));
  for (int entries = 0; entries <= 5; ++entries) {
    entries_until_trouble = entries;
    const auto listed = store_.List(folder_.path);
    ASSERT_FALSE(listed.ok()) << entries;
    EXPECT_EQ(listed.status().message(),
              "failed to read directory " + folder_.path + ": " + std::strerror(EIO));
  }
}

TEST_F(TroubledFolder, HasNotLostWhatCannotBeExamined) {
  troubled = folder_.path + "/link";
  const auto listed = store_.List(folder_.path);
  ASSERT_TRUE(listed.ok());
  EXPECT_THAT(*listed, testing::ElementsAre(Entry{"link", true}, Entry{"model", true}));
  EXPECT_TRUE(store_.IsFolder(troubled));
  EXPECT_FALSE(store_.IsFolder(folder_.path + "/dangling"));
}

}  // namespace
}  // namespace nereid::repository
