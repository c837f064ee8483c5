// SPDX-License-Identifier: Apache-2.0
// Files for the tests of this module.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace nereid::cli {

// Has an empty folder, which is removed at the end.
class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string path = (std::filesystem::temp_directory_path() / "serve-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
  }
  ~FileTest() override { std::filesystem::remove_all(root_); }

  // Returns the whole path of a file in the folder.
  std::string Path(std::string_view name) const { return (root_ / name).string(); }
  // Writes a file, or makes a folder if `name` ends with a slash.
  void Write(std::string_view name, std::string_view text = "x") {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    if (path.has_filename()) std::ofstream(path) << text;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace nereid::cli
