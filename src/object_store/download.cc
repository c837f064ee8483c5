// SPDX-License-Identifier: Apache-2.0
#include "object_store/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/sleep.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "object_store/digest.h"

namespace nereid::object_store {
namespace {

base::Status FileError(const char* what, const std::string& path) {
  return base::InternalError(fmt::format("Failed to {} {}: {}", what, path, std::strerror(errno)));
}

// The progress of a download is recorded in blocks of this size; a part consists of several blocks.
constexpr uint64_t kBlockBytes = 1 << 20;

// Waits until no other process holds the lock. Returns false if locking fails or `over` is
// requested. It polls because a blocking call would not notice that the other downloads of this
// process have failed, and two processes could then wait for each other.
bool Lock(int fd, const std::stop_token& over) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || over.stop_requested()) return false;
    base::SleepFor(std::chrono::milliseconds(20));
  }
  return true;
}

// One file that is being downloaded. Thread-safe.
class File {
 public:
  // `want` outlives the file; `over` is requested when the downloads have failed.
  File(const Download& want, uint64_t part_bytes, std::stop_token over)
      : want_(want),
        over_(std::move(over)),
        blocks_per_part_(std::max<uint64_t>(part_bytes / kBlockBytes, 1)),
        // An empty file is one block of no bytes.
        block_count_(std::max<uint64_t>((want.object.size + kBlockBytes - 1) / kBlockBytes, 1)),
        left_(part_count()) {}

  uint64_t part_count() const { return (block_count_ + blocks_per_part_ - 1) / blocks_per_part_; }

  // Fetches one part unless it is there already. The caller that fetches the last part completes
  // the file.
  base::Status FetchPart(Bucket& bucket, uint64_t part) {
    NEREID_RETURN_IF_ERROR(Open());
    if (is_complete_) return base::OkStatus();
    const uint64_t end = std::min((part + 1) * blocks_per_part_, block_count_);
    uint64_t first = part * blocks_per_part_;
    while (first < end && is_done_[first]) ++first;
    if (first < end) NEREID_RETURN_IF_ERROR(Fetch(bucket, first, end));
    return left_.fetch_sub(1) == 1 ? Complete() : base::OkStatus();
  }

 private:
  // Opens the file once; concurrent callers wait for it.
  base::Status Open() {
    base::MutexLock lock(opening_);
    if (!opened_) opened_ = OpenParts();
    return *opened_;
  }

  base::Status OpenParts() {
    const std::string path = want_.path + ".part";
    for (;;) {
      data_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (!data_.valid()) return FileError("create", path);
      if (!Lock(data_.get(), over_)) return FileError("lock", path);
      if (IsThere(want_.path, want_.object.size)) {  // another process fetched it in the meantime
        is_complete_ = true;
        data_.Close();
        return base::OkStatus();
      }
      // The previous holder of the lock may have removed the file that was opened.
      struct stat ours{};
      struct stat named{};
      if (::fstat(data_.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
          ours.st_ino == named.st_ino) {
        break;
      }
    }
    if (::ftruncate(data_.get(), static_cast<off_t>(want_.object.size)) != 0) {
      return FileError("write", path);
    }
    return ReadJournal();
  }

  base::Status ReadJournal() {
    const std::string path = want_.path + ".done";
    journal_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!journal_.valid()) return FileError("create", path);
    is_done_.assign(block_count_, 0);
    const ssize_t count = ::pread(journal_.get(), is_done_.data(), block_count_, 0);
    for (char& done : is_done_) {
      if (&done - is_done_.data() >= count || done != 1) done = 0;
    }
    // The last block is always fetched again, because the check at the end needs a reply.
    is_done_.back() = 0;
    return base::OkStatus();
  }

  // Fetches the blocks [first, end) and records each one that is complete.
  base::Status Fetch(Bucket& bucket, uint64_t first, uint64_t end) {
    const Object& object = want_.object;
    const uint64_t end_byte = std::min(end * kBlockBytes, object.size);
    uint64_t at = first * kBlockBytes;
    uint64_t block = first;
    if (at < end_byte) {
      const auto write = [&](std::string_view bytes) {
        NEREID_RETURN_IF_ERROR(Write(bytes, at));
        at += bytes.size();
        for (; at >= (block + 1) * kBlockBytes; ++block) NEREID_RETURN_IF_ERROR(Note(block));
        return base::OkStatus();
      };
      NEREID_ASSIGN_OR_RETURN(const bool has_md5,
                              bucket.Read(object, {at, end_byte - at}, write, over_));
      if (!has_md5) checks_md5_ = false;
    }
    return block < end ? Note(block) : base::OkStatus();
  }

  base::Status Write(std::string_view bytes, uint64_t at) {
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(data_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return FileError("write", want_.path + ".part");
      bytes.remove_prefix(static_cast<size_t>(count));
      at += static_cast<uint64_t>(count);
    }
    return base::OkStatus();
  }

  base::Status Note(uint64_t block) {
    const char done = 1;
    if (::pwrite(journal_.get(), &done, 1, static_cast<off_t>(block)) == 1) return base::OkStatus();
    return FileError("write", want_.path + ".done");
  }

  base::Status Complete() {
    const Object& object = want_.object;
    const std::string part = want_.path + ".part";
    if (checks_md5_ && !object.md5.empty() && Md5OfFile(data_.get(), object.size) != object.md5) {
      ::unlink((want_.path + ".done").c_str());
      ::unlink(part.c_str());
      return base::InternalError(
          fmt::format("Failed to get object at {}: what arrived does not have the checksum {}",
                      object.key, object.md5));
    }
    if (::fdatasync(data_.get()) != 0 || ::fchmod(data_.get(), 0444) != 0 ||
        ::rename(part.c_str(), want_.path.c_str()) != 0) {
      return FileError("write", want_.path);
    }
    ::unlink((want_.path + ".done").c_str());
    data_.Close();  // and wakes the processes that wait for the lock
    journal_.Close();
    return base::OkStatus();
  }

  const Download& want_;
  const std::stop_token over_;
  const uint64_t blocks_per_part_;
  const uint64_t block_count_;
  std::atomic<uint64_t> left_;
  std::atomic<bool> checks_md5_{true};
  base::Mutex opening_;
  std::optional<base::Status> opened_ NEREID_GUARDED_BY(opening_);
  // Constant once opened. is_done_ has the blocks of an earlier attempt.
  bool is_complete_ = false;
  base::UniqueFd data_;
  base::UniqueFd journal_;
  std::vector<char> is_done_;
};

}  // namespace

bool IsThere(const std::string& path, uint64_t size) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) == size;
}

base::Status FetchAll(Bucket& bucket, const std::vector<Download>& downloads,
                      const DownloadOptions& options) {
  std::stop_source over;
  std::vector<std::unique_ptr<File>> files;
  std::vector<std::pair<File*, uint64_t>> parts;  // in the order of the files: see below
  for (const Download& download : downloads) {
    files.push_back(std::make_unique<File>(download, options.part_bytes, over.get_token()));
    for (uint64_t i = 0; i < files.back()->part_count(); ++i)
      parts.push_back({files.back().get(), i});
  }
  std::atomic<size_t> next{0};
  base::Mutex mutex;
  base::Status first_failure;
  // Parts are taken in the order of the files, and completing a file never depends on a later one.
  // Two processes therefore cannot wait for each other: each would have to be ahead of the other.
  const auto work = [&] {
    for (size_t at = next++; at < parts.size() && !over.stop_requested(); at = next++) {
      base::Status status = parts[at].first->FetchPart(bucket, parts[at].second);
      if (status.ok()) continue;
      // The first failure is the cause; later ones are results of the cancellation.
      base::MutexLock lock(mutex);
      if (first_failure.ok()) first_failure = std::move(status);
      over.request_stop();
    }
  };
  {
    std::vector<base::Thread> threads;
    const size_t count = std::min(options.connections, parts.size());
    for (size_t i = 1; i < count; ++i) threads.emplace_back("fetch_" + std::to_string(i), work);
    work();
  }
  return first_failure;
}

}  // namespace nereid::object_store
