// SPDX-License-Identifier: Apache-2.0
#include "repository/local_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "config/paths.h"

namespace nereid::repository {
namespace {

std::optional<struct stat> Stat(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

base::Status CannotRead(const std::string& path, int error) {
  return base::InternalError(
      fmt::format("failed to open text file for read {}: {}", path, std::strerror(error)));
}

// Deleter for an open folder.
struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

base::Result<std::vector<Entry>> LocalStore::List(const std::string& folder) const {
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (open == nullptr) {
    return base::InternalError(
        fmt::format("failed to open directory {}: {}", folder, std::strerror(errno)));
  }
  std::vector<Entry> entries;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const auto status = Stat(config::JoinPath(folder, name));
    if (status) entries.push_back({std::string(name), S_ISDIR(status->st_mode)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

bool LocalStore::Exists(const std::string& path) const { return ::access(path.c_str(), F_OK) == 0; }

bool LocalStore::IsFolder(const std::string& path) const {
  const auto status = Stat(path);
  return status && S_ISDIR(status->st_mode);
}

base::Result<std::string> LocalStore::Read(const std::string& path, size_t max_bytes) const {
  // Without O_NONBLOCK, opening a pipe without a writer would block forever.
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return CannotRead(path, errno);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return CannotRead(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return CannotRead(path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  }
  std::string contents;
  for (;;) {
    // Reads the rest of the file according to its size, and continues in case it grew. One byte
    // beyond the limit shows that the file is too large.
    const auto size = static_cast<size_t>(status.st_size);
    const size_t left = size > contents.size() ? size - contents.size() : 4096;
    const size_t wanted =
        std::min<size_t>(std::min<size_t>(left, 64 * 1024), max_bytes - contents.size()) + 1;
    const size_t old_size = contents.size();
    contents.resize(old_size + wanted);
    const ssize_t count = ::read(file.get(), contents.data() + old_size, wanted);
    if (count < 0 && errno != EINTR) return CannotRead(path, errno);
    contents.resize(old_size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return contents;
    if (contents.size() > max_bytes) {
      return base::InternalError(fmt::format(
          "failed to open text file for read {}: it is larger than {} bytes", path, max_bytes));
    }
  }
}

base::Result<int64_t> LocalStore::ModifiedNs(const std::string& path) const {
  const auto status = Stat(path);
  if (!status) return base::InternalError("failed to stat file " + path);
  // Replacing a file by an older one changes only st_ctim.
  return std::max(Nanoseconds(status->st_mtim), Nanoseconds(status->st_ctim));
}

}  // namespace nereid::repository
