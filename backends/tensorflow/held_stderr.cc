// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/held_stderr.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace nereid::tensorflow {

namespace {

// Such as "I0000 00:00:1795378213.373726   11636 FILE:153] text": before its initialization,
// Abseil has no date.
bool IsAbseils(std::string_view line) {
  return line.starts_with("WARNING: All log messages before absl::InitializeLog()") ||
         (line.size() > 1 && line.substr(1).starts_with("0000 00:00:"));
}

void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDERR_FILENO, text.data(), text.size());
    if (wrote <= 0) {
      return;
    }
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, part.data(), part.size(), at);
    if (got <= 0) {
      return text;
    }
    text.append(part.data(), static_cast<size_t>(got));
    at += got;
  }
}

}  // namespace

std::vector<std::string> HoldBackAbseilLines(const std::function<void()>& body) {
  const int memory = ::memfd_create("stderr", MFD_CLOEXEC);
  const int original = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  // Lines of several threads follow each other.
  const bool holds = memory >= 0 && original >= 0 && ::fcntl(memory, F_SETFL, O_APPEND) == 0 &&
                     ::dup2(memory, STDERR_FILENO) >= 0;
  body();
  std::vector<std::string> held;
  if (holds) {
    ::dup2(original, STDERR_FILENO);
    const std::string written = ReadAll(memory);
    std::string_view rest = written;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
      rest.remove_prefix(line.size());
      if (IsAbseils(line)) {
        held.emplace_back(line.substr(0, line.find('\n')));
      } else {
        WriteAll(line);
      }
    }
  }
  for (const int fd : {memory, original}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  return held;
}

}  // namespace nereid::tensorflow
