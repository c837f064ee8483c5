// SPDX-License-Identifier: Apache-2.0
// Writes to a file or pipe to the end.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace nereid::base {

// Returns whether all of the text was written; `errno` says why not. May be called in a signal
// handler.
inline bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace nereid::base
