// SPDX-License-Identifier: Apache-2.0
#include "object_store/local_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "object_store/digest.h"

namespace nereid::object_store {
namespace {

namespace fs = std::filesystem;

// Files that no folder uses stay this long, because a folder that needs them may be in preparation.
constexpr auto kUnusedFilesStay = std::chrono::hours(24);
constexpr auto kUnfinishedFilesStay = std::chrono::hours(7 * 24);
constexpr const char* kLock = ".lock";

base::Status FileError(const char* what, const fs::path& path, int error) {
  return base::InternalError(
      fmt::format("Failed to {} {}: {}", what, path.string(), std::strerror(error)));
}

base::Status MakeFolder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return base::OkStatus();
  return FileError("create local folder", path, errno);
}

bool IsOlderThan(const fs::path& path, std::chrono::seconds age) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  return std::chrono::system_clock::from_time_t(status.st_mtime) + age <
         std::chrono::system_clock::now();
}

// Returns the lock beside a folder: shared while the folder is in use, exclusive to remove it.
// Waits for a shared lock. Returns nothing if locking fails.
base::UniqueFd LockFolder(const fs::path& folder, int how) {
  const std::string path = folder.string() + kLock;
  for (;;) {
    base::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock.valid()) return {};
    while (::flock(lock.get(), how) != 0) {
      if (errno != EINTR) return {};
    }
    // The lock file may have been removed before it was locked.
    struct stat ours{};
    struct stat named{};
    if (::fstat(lock.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
        ours.st_ino == named.st_ino) {
      return lock;
    }
  }
}

using Inodes = std::set<ino_t>;

// The files in a folder that are linked nowhere else except among the cache's files.
Inodes FilesOfNoOther(const fs::path& folder) {
  Inodes inodes;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status{};
    if (::lstat(it->path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_nlink <= 2) {
      inodes.insert(status.st_ino);
    }
  }
  return inodes;
}

// Removes the states of a model's folder except `kept` and those in use. Returns the files that no
// folder uses any more.
Inodes RemoveOtherStates(const fs::path& model, const std::string& kept) {
  std::error_code error;
  std::set<fs::path> others;
  for (const auto& entry : fs::directory_iterator(model, error)) {
    fs::path path = entry.path();
    if (path.extension() == kLock) path.replace_extension();
    if (path.filename() != kept) others.insert(path);
  }
  Inodes unused;
  for (const fs::path& folder : others) {
    const base::UniqueFd lock = LockFolder(folder, LOCK_EX | LOCK_NB);
    if (!lock.valid()) continue;
    unused.merge(FilesOfNoOther(folder));
    fs::remove_all(folder, error);
    ::unlink((folder.string() + kLock).c_str());
  }
  return unused;
}

// Removes files that are no longer in any folder, or never were.
void RemoveUnusedFiles(const fs::path& files, const Inodes& unused) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(files, error)) {
    const fs::path& path = entry.path();
    const std::string extension = path.extension();
    const bool is_unfinished = extension == ".part" || extension == ".done";
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || status.st_nlink > 1) continue;
    if (unused.contains(status.st_ino) ||
        IsOlderThan(path, is_unfinished ? std::chrono::seconds(kUnfinishedFilesStay)
                                        : std::chrono::seconds(kUnusedFilesStay))) {
      ::unlink(path.c_str());
    }
  }
}

// The path of the link to the newest state of a model's folder.
fs::path NewestLink(const fs::path& state) { return state.parent_path().string() + ".newest"; }

// Keeps one state of a folder on disk.
class Lease final : public repository::ModelFiles {
 public:
  Lease(fs::path cache, fs::path state, base::UniqueFd lock)
      : cache_(std::move(cache)), state_(std::move(state)), lock_(std::move(lock)) {}

  ~Lease() override {
    lock_.Close();
    std::error_code error;
    const fs::path newest = fs::read_symlink(NewestLink(state_), error);
    if (error || newest == state_.filename()) return;
    RemoveUnusedFiles(cache_ / "files", RemoveOtherStates(state_.parent_path(), newest));
  }

 private:
  const fs::path cache_;
  const fs::path state_;
  base::UniqueFd lock_;
};

std::string StateName(const FolderContents& contents) {
  std::string text;
  for (const FolderFile& file : contents.files) {
    text += fmt::format("{}\n{}\n{}\n", file.path, file.object.etag, file.object.size);
  }
  for (const std::string& folder : contents.folders) text += folder + "/\n";
  return Sha256Hex(text).substr(0, 32);
}

bool IsWhole(const FolderContents& contents, const fs::path& folder) {
  for (const FolderFile& file : contents.files) {
    if (!IsThere(folder / file.path, file.object.size)) return false;
  }
  std::error_code error;
  for (const std::string& empty : contents.folders) {
    if (!fs::is_directory(folder / empty, error)) return false;
  }
  return fs::is_directory(folder, error);
}

void SetNewest(const fs::path& state) {
  const fs::path link = NewestLink(state);
  std::error_code error;
  if (fs::read_symlink(link, error) == state.filename()) return;
  const fs::path temporary = fmt::format("{}.{}", link.string(), ::getpid());
  fs::remove(temporary, error);
  fs::create_symlink(state.filename(), temporary, error);
  fs::rename(temporary, link, error);
}

}  // namespace

std::string LocalCache::DefaultDirectory(const std::string& parent, std::string_view kind) {
  std::error_code error;
  const fs::path folder = parent.empty() ? fs::temp_directory_path(error) : fs::path(parent);
  return folder / fmt::format("nereid-{}-{}", kind, ::getuid());
}

base::Status LocalCache::Prepare() const {
  const fs::path root = options_.directory;
  NEREID_RETURN_IF_ERROR(MakeFolder(root));
  // In a folder that other users can write to, one of them may have made it first.
  struct stat status{};
  if (::lstat(root.c_str(), &status) != 0) return FileError("stat", root, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid() || (status.st_mode & 022) != 0) {
    return base::InternalError(
        fmt::format("{} is not a folder that only this user can write to; copies of models "
                    "cannot be kept there",
                    root.string()));
  }
  NEREID_RETURN_IF_ERROR(MakeFolder(root / "files"));
  return MakeFolder(root / "models");
}

std::string LocalCache::FilePath(const std::string& origin, const Object& object) const {
  const std::string what = fmt::format("{}\n{}\n{}", origin, object.etag, object.size);
  return fs::path(options_.directory) / "files" / Sha256Hex(what);
}

base::Result<std::string> LocalCache::OpenFile(Bucket& bucket, const std::string& origin,
                                               const Object& object) {
  NEREID_RETURN_IF_ERROR(Prepare());
  std::string path = FilePath(origin, object);
  if (!IsThere(path, object.size)) {
    NEREID_RETURN_IF_ERROR(FetchAll(bucket, {{object, path}}, options_.download));
  }
  return path;
}

base::Status LocalCache::Fill(Bucket& bucket, const FolderContents& contents,
                              const std::string& folder) const {
  std::vector<Download> downloads;
  uint64_t byte_size = 0;
  for (const FolderFile& file : contents.files) {
    Download download{file.object, FilePath(contents.origin + "/" + file.path, file.object)};
    if (IsThere(download.path, file.object.size)) continue;
    byte_size += file.object.size;
    downloads.push_back(std::move(download));
  }
  const auto start = std::chrono::steady_clock::now();
  NEREID_RETURN_IF_ERROR(FetchAll(bucket, downloads, options_.download));
  NEREID_LOG(kInfo, "fetched {} of {} files ({} bytes) of {} in {} ms", downloads.size(),
             contents.files.size(), byte_size, contents.origin,
             std::chrono::duration_cast<std::chrono::milliseconds>(
                 std::chrono::steady_clock::now() - start)
                 .count());
  std::error_code error;
  for (const std::string& empty : contents.folders) {
    fs::create_directories(fs::path(folder) / empty, error);
    if (error) return FileError("create local folder", fs::path(folder) / empty, error.value());
  }
  fs::create_directories(folder, error);
  for (const FolderFile& file : contents.files) {
    const fs::path path = fs::path(folder) / file.path;
    fs::create_directories(path.parent_path(), error);
    if (error) return FileError("create local folder", path.parent_path(), error.value());
    const std::string from = FilePath(contents.origin + "/" + file.path, file.object);
    if (::link(from.c_str(), path.c_str()) != 0) return FileError("create", path, errno);
  }
  return base::OkStatus();
}

base::Result<repository::LocalFolder> LocalCache::Open(Bucket& bucket,
                                                       const FolderContents& contents) {
  NEREID_RETURN_IF_ERROR(Prepare());
  const fs::path cache = options_.directory;
  const fs::path model = cache / "models" / Sha256Hex(contents.origin).substr(0, 32);
  NEREID_RETURN_IF_ERROR(MakeFolder(model));
  const fs::path state = model / StateName(contents);
  base::UniqueFd lock = LockFolder(state, LOCK_SH);
  if (!lock.valid()) return FileError("lock", state, errno);
  std::error_code error;
  for (int attempt = 1; !IsWhole(contents, state / contents.name); ++attempt) {
    // Two processes that make the same folder each make a copy; the second one finds the first
    // one's in place.
    std::string temporary = model / "new-XXXXXX";
    if (::mkdtemp(temporary.data()) == nullptr) {
      return FileError("create local folder", temporary, errno);
    }
    const base::UniqueFd temporary_lock = LockFolder(temporary, LOCK_SH);
    base::Status status = Fill(bucket, contents, fs::path(temporary) / contents.name);
    if (status.ok() && ::rename(temporary.c_str(), state.c_str()) != 0 && attempt > 1) {
      fs::remove_all(state, error);  // the folder in place is incomplete
    }
    fs::remove_all(temporary, error);
    ::unlink((temporary + kLock).c_str());
    if (!status.ok() && attempt == 3) return status;
    // An existing file may have been removed as unused before it was linked. Only that error is
    // worth a retry.
    if (!status.ok() && status.message().find("No such file") == std::string_view::npos) {
      return status;
    }
    if (attempt > 5) return base::InternalError("cannot make " + state.string());
  }
  SetNewest(state);
  RemoveUnusedFiles(cache / "files", RemoveOtherStates(model, state.filename()));
  return repository::LocalFolder{state / contents.name,
                                 std::make_shared<Lease>(cache, state, std::move(lock))};
}

}  // namespace nereid::object_store
