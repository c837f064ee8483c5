// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace nereid::base {
namespace {

namespace fs = std::filesystem;

// A server that starts at this moment may mistake the new folder for an abandoned one.
constexpr int kAttempts = 8;

// Whether the open `folder` is the one at `path`.
bool IsAt(const UniqueFd& folder, const std::string& path) {
  struct stat open{};
  struct stat named{};
  return ::fstat(folder.get(), &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes the folder at `path` if its process is gone. Folders of other users and non-folders are
// left alone.
bool RemoveIfAbandoned(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (status.st_uid != ::geteuid()) return false;
  const UniqueFd folder = OpenFolder(path);
  if (!folder.valid() || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!IsAt(folder, path)) return false;
  std::error_code error;
  fs::remove_all(path, error);
  return !error;
}

}  // namespace

Result<TemporaryFolder> MakeTemporaryFolder(std::string_view purpose) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return InternalError("there is no folder for temporary files: " + error.message());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path =
        (parent / (std::string(kTemporaryPrefix) + std::string(purpose) + "-XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) {
      return InternalError("failed to create a temporary folder in " + parent.string() + ": " +
                           std::strerror(errno));
    }
    UniqueFd lock = OpenFolder(path);
    // If the file system has no locks, no other process can lock the folder, either, so it is never
    // taken for abandoned.
    if (lock.valid()) ::flock(lock.get(), LOCK_SH);
    if (lock.valid() && IsAt(lock, path)) {
      auto at_quick_exit = std::make_unique<QuickExitFolder>(path);
      return TemporaryFolder{std::move(path), std::move(lock), std::move(at_quick_exit)};
    }
  }
  return InternalError("failed to keep a temporary folder in " + parent.string());
}

size_t RemoveAbandonedFolders() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return 0;
  size_t removed = 0;
  fs::directory_iterator entry(parent, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kTemporaryPrefix) && RemoveIfAbandoned(entry->path().string())) ++removed;
  }
  return removed;
}

std::string HideTemporaryFolder(std::string text, std::string_view folder, std::string_view name) {
  if (folder.find(std::string("/") + std::string(kTemporaryPrefix)) == std::string_view::npos) {
    return text;
  }
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    text.replace(at, folder.size(), name);
    at += name.size();
  }
  return text;
}

}  // namespace nereid::base
