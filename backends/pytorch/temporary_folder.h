// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a package while it is loaded.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "backend_kit/error.h"

namespace nereid::pytorch {

// The folder is removed with the object. Its name and its lock let the next server remove it, if
// this process is killed first.
class TemporaryFolder {
 public:
  static backend::Result<TemporaryFolder> Make() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string path = (parent / "nereid-tmp-pytorch-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return backend::Error::Internal(
          backend::StrCat("cannot make a temporary folder like '", path, "'"));
    }
    const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0) {
      flock(lock, LOCK_SH);
    }
    return TemporaryFolder(std::move(path), lock);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
    if (lock_ >= 0) {
      close(lock_);
    }
  }

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;  // empty: moved away
  int lock_ = -1;
};

}  // namespace nereid::pytorch
