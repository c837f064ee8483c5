// SPDX-License-Identifier: Apache-2.0
// A model repository on disk for tests, written from texts.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace nereid::check {

// Files by their path in the repository; a path that ends in '/' is a folder.
using Files = std::vector<std::pair<std::string, std::string>>;

// A folder that is removed with the object.
class RepositoryFolder {
 public:
  explicit RepositoryFolder(const Files& files) {
    static std::atomic<int> count{0};
    path_ = testing::TempDir() + "nereid_check_" + std::to_string(getpid()) + "_" +
            std::to_string(count++);
    std::filesystem::create_directories(path_);
    for (const auto& [name, text] : files) {
      const std::filesystem::path path = std::filesystem::path(path_) / name;
      if (name.ends_with('/')) {
        std::filesystem::create_directories(path);
      } else {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
      }
    }
  }
  ~RepositoryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  RepositoryFolder(const RepositoryFolder&) = delete;
  RepositoryFolder& operator=(const RepositoryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nereid::check
