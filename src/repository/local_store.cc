// SPDX-License-Identifier: Apache-2.0
#include "repository/local_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "base/write_all.h"
#include "config/paths.h"

namespace nereid::repository {
namespace {

// Replace is for small files.
constexpr size_t kMaxReplacedBytes = 16 << 20;

std::optional<struct stat> Stat(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

// Whether the error means that nothing is at a path, or nothing that this process may see. Any
// other one (EIO, ESTALE, ETIMEDOUT) is a file system's trouble, which says nothing of the path:
// what seems to be gone would be unloaded.
bool MeansAbsence(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES ||
         error == EPERM || error == ENAMETOOLONG;
}

// Whether an entry of the folder is a folder itself; nothing if it has vanished, or is a dangling
// link. One that cannot be examined for another reason is taken for a folder, so that whoever opens
// it gets the reason.
std::optional<bool> IsFolderIn(const std::string& folder, const dirent& entry) {
  if (entry.d_type == DT_DIR || entry.d_type == DT_REG) return entry.d_type == DT_DIR;
  const auto status = Stat(config::JoinPath(folder, entry.d_name));
  if (status) return S_ISDIR(status->st_mode);
  return MeansAbsence(errno) ? std::nullopt : std::optional(true);
}

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

base::Status CannotRead(const std::string& path, int error) {
  return base::InternalError(
      fmt::format("failed to open text file for read {}: {}", path, std::strerror(error)));
}

base::Status CannotWrite(const std::string& path) {
  return base::InternalError(fmt::format("failed to write {}: {}", path, std::strerror(errno)));
}

// Opens the file, empty if there was none, and locks it. The lock is the file's own, because any
// other file would stay behind in the repository.
base::Result<base::UniqueFd> LockFile(const std::string& path) {
  while (true) {
    base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    struct stat ours{};
    struct stat named{};
    if (!file.valid() || ::fstat(file.get(), &ours) != 0) return CannotWrite(path);
    if (!S_ISREG(ours.st_mode)) {
      return base::InternalError(fmt::format("failed to write {}: it is no regular file", path));
    }
    if (::flock(file.get(), LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      return CannotWrite(path);
    }
    // Whoever had the lock before may have put another file in this one's place.
    if (::stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev) {
      return file;
    }
  }
}

// Writes the text to a file beside `path`, and renames it. REQUIRES: `path` is locked.
base::Status WriteWhole(const std::string& path, const std::string& text, mode_t mode) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());  // of a writer that was killed
  const base::UniqueFd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.valid()) return CannotWrite(temporary);
  if (::fchmod(file.get(), mode) != 0 || !base::WriteAll(file.get(), text) ||
      ::fsync(file.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const base::Status status = CannotWrite(path);
    ::unlink(temporary.c_str());
    return status;
  }
  return base::OkStatus();
}

// Deleter for an open folder.
struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

base::Result<std::vector<Entry>> LocalStore::List(const std::string& folder) const {
  const auto failed = [&folder](std::string_view what) {
    return base::InternalError(
        fmt::format("failed to {} directory {}: {}", what, folder, std::strerror(errno)));
  };
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (open == nullptr) return failed("open");
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::optional<bool> is_folder = IsFolderIn(folder, *entry);
    if (is_folder) entries.push_back({std::string(name), *is_folder});
  }
  if (errno != 0) return failed("read");
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

bool LocalStore::Exists(const std::string& path) const {
  return ::access(path.c_str(), F_OK) == 0 || !MeansAbsence(errno);
}

bool LocalStore::IsFolder(const std::string& path) const {
  const auto status = Stat(path);
  return status ? S_ISDIR(status->st_mode) : !MeansAbsence(errno);
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

// It is opened anew each time: only then do clients of NFS ask their server.
base::Result<std::optional<SmallFile>> LocalStore::ReadNow(const std::string& path,
                                                           size_t max_bytes,
                                                           const std::stop_token&) const {
  base::Result<std::string> text = Read(path, max_bytes);
  if (!text.ok()) {
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<SmallFile>();
    text = Read(path, max_bytes);  // it may have been made meanwhile
    if (!text.ok()) return text.status();
  }
  // A file that a writer has made to lock it.
  if (text->empty()) return std::optional<SmallFile>();
  return std::optional<SmallFile>({*std::move(text), {}});
}

base::Result<bool> LocalStore::Replace(const std::string& path, const std::string& text,
                                       const std::optional<SmallFile>& before) const {
  NEREID_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockFile(path));
  struct stat status{};
  if (::fstat(lock.get(), &status) != 0) return CannotWrite(path);
  NEREID_ASSIGN_OR_RETURN(const std::string now, Read(path, kMaxReplacedBytes));
  if (now != (before ? before->text : std::string())) return false;
  NEREID_RETURN_IF_ERROR(WriteWhole(path, text, status.st_mode & 0777));
  return true;
}

}  // namespace nereid::repository
