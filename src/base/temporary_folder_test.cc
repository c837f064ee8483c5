// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace nereid::base {
namespace {

namespace fs = std::filesystem;

// Gives the test its own folder for temporary files.
class TemporaryFolders : public testing::Test {
 protected:
  TemporaryFolders() {
    std::string path = (fs::temp_directory_path() / "folders_test_XXXXXX").string();
    root_ = ::mkdtemp(path.data());
    before_ = std::getenv("TMPDIR") == nullptr ? "" : std::getenv("TMPDIR");
    ::setenv("TMPDIR", root_.c_str(), 1);
  }
  ~TemporaryFolders() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(root_);
  }

  // Makes the folder of a process that was killed, with a file in it.
  std::string Abandon() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto made = MakeTemporaryFolder("model");
      const std::string path = made.ok() ? (*made).path : "";
      std::ofstream(path + "/model.onnx") << "weights";
      if (::write(ends[1], path.data(), path.size()) < 0) ::_exit(1);
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    ::close(ends[1]);
    char path[4096];
    const ssize_t size = ::read(ends[0], path, sizeof(path));
    ::close(ends[0]);
    return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
  }

  fs::path root_;
  std::string before_;
};

TEST_F(TemporaryFolders, OfAProcessThatWasKilledAreRemoved) {
  const std::string path = Abandon();
  ASSERT_TRUE(fs::exists(path + "/model.onnx"));
  EXPECT_EQ(RemoveAbandonedFolders(), 1u);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(TemporaryFolders, OfALiveProcessAreKept) {
  auto mine = MakeTemporaryFolder("model");
  ASSERT_TRUE(mine.ok());
  EXPECT_EQ(RemoveAbandonedFolders(), 0u);
  EXPECT_TRUE(fs::is_directory((*mine).path));
  EXPECT_EQ(fs::status((*mine).path).permissions(), fs::perms::owner_all);
  (*mine).lock.Close();
  EXPECT_EQ(RemoveAbandonedFolders(), 1u);
}

TEST_F(TemporaryFolders, WithOtherNamesAndFilesAreKept) {
  fs::create_directory(root_ / "nereid-model-abc123");
  fs::create_directory(root_ / "somebody");
  fs::create_directory_symlink(root_ / "somebody", root_ / "nereid-tmp-link-abc123");
  std::ofstream(root_ / "nereid-tmp-file") << "text";
  EXPECT_EQ(RemoveAbandonedFolders(), 0u);
  EXPECT_TRUE(fs::exists(root_ / "nereid-model-abc123"));
  EXPECT_TRUE(fs::exists(root_ / "nereid-tmp-link-abc123"));
  EXPECT_TRUE(fs::exists(root_ / "nereid-tmp-file"));
}

TEST_F(TemporaryFolders, AreRemovedWithoutFollowingLinks) {
  fs::create_directory(root_ / "kept");
  std::ofstream(root_ / "kept" / "file") << "text";
  const std::string path = Abandon();
  fs::create_directory_symlink(root_ / "kept", path + "/link");
  EXPECT_EQ(RemoveAbandonedFolders(), 1u);
  EXPECT_TRUE(fs::exists(root_ / "kept" / "file"));
}

TEST(HideTemporaryFolder, NamesTheModelInstead) {
  EXPECT_EQ(HideTemporaryFolder("no /tmp/nereid-tmp-model-a/1/model.py (/tmp/nereid-tmp-model-a)",
                                "/tmp/nereid-tmp-model-a", "m"),
            "no m/1/model.py (m)");
  EXPECT_EQ(HideTemporaryFolder("no /models/m/1/model.py", "/models/m", "m"),
            "no /models/m/1/model.py");
}

}  // namespace
}  // namespace nereid::base
