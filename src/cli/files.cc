// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace nereid::cli {
namespace {

// Closes a file that is not a standard stream.
struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

base::Status CannotDo(std::string_view what, const std::string& path) {
  return base::InvalidArgumentError(
      fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

}  // namespace

base::Result<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin
                                                               : std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return CannotDo("read", path);
  std::string content;
  char block[1 << 16];
  while (const size_t size = std::fread(block, 1, sizeof block, file.get())) {
    content.append(block, size);
  }
  if (std::ferror(file.get()) != 0) return CannotDo("read", path);
  return content;
}

base::Status CheckWritable(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) errno = EISDIR;
    const bool is_fit = !S_ISDIR(status.st_mode) && ::access(path.c_str(), W_OK) == 0;
    return is_fit ? base::OkStatus() : CannotDo("write", path);
  }
  if (errno != ENOENT) return CannotDo("write", path);
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool is_fit = !path.empty() && ::access(folder.c_str(), W_OK | X_OK) == 0;
  return is_fit ? base::OkStatus() : CannotDo("write", path);
}

base::Status WriteFile(const std::string& path, std::string_view content) {
  std::FILE* const file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return CannotDo("write", path);
  const bool is_whole = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !is_whole) return CannotDo("write", path);
  return base::OkStatus();
}

}  // namespace nereid::cli
