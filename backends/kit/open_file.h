// SPDX-License-Identifier: Apache-2.0
// A file that is open for reading.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace nereid::backend {

// Closes the file at the end of its scope.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;  // negative, with errno set, if the file could not be opened
};

}  // namespace nereid::backend
