// SPDX-License-Identifier: Apache-2.0
#include "doctor/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/system_files.h"
#include "base/unique_fd.h"
#include "doctor/units.h"

namespace nereid::doctor {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFull = 16 * kMiB;
constexpr uint64_t kNearlyFull = 1024 * kMiB;
// A file's time may be a little ahead on file systems of other machines.
constexpr int64_t kTolerableSkewSeconds = 5;

uint64_t FreeBytes(const struct statvfs& info) { return uint64_t{info.f_bavail} * info.f_frsize; }

// Writes a file and removes it. Returns the error, and the file's time in `changed`.
int TryToWrite(const std::string& folder, time_t& changed) {
  std::string path = folder + "/nereid-doctor-XXXXXX";
  const base::UniqueFd file(::mkstemp(path.data()));
  if (!file.valid()) return errno;
  ::unlink(path.c_str());
  const std::string block(4096, 'x');
  if (::write(file.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
    return errno;
  }
  struct stat info{};
  ::fstat(file.get(), &info);
  changed = info.st_mtime;
  return 0;
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void ExamineSpace(const std::string& folder, const struct statvfs& info, Report& report) {
  const uint64_t free = FreeBytes(info);
  const std::string text = fmt::format("{} free in {}", BytesText(free), folder);
  constexpr const char* kAdvice =
      "Models in object stores and archives of Python environments are unpacked there: make room, "
      "or set TMPDIR.";
  if (free < kFull) {
    report.Problem("folders.temporary_space", text, kAdvice);
  } else if (free < kNearlyFull) {
    report.Note("folders.temporary_space", text, kAdvice);
  } else {
    report.Ok("folders.temporary_space", text);
  }
}

// What a walk through a repository has seen.
struct Walk {
  size_t files = 0;
  std::vector<std::string> unreadable;  // paths, at most a few
  size_t unreadable_count = 0;
  std::string from_future;  // a file with a time that is yet to come
};

constexpr size_t kMaxNamed = 3;
constexpr size_t kMaxFiles = 100'000;  // enough for any repository, and a limit for a wrong folder

void Look(const fs::directory_entry& entry, int64_t now, Walk& walk) {
  const std::string path = entry.path().string();
  struct stat info{};
  const bool is_found = ::stat(path.c_str(), &info) == 0;
  const int wanted = is_found && S_ISDIR(info.st_mode) ? R_OK | X_OK : R_OK;
  if (!is_found || ::access(path.c_str(), wanted) != 0) {
    if (++walk.unreadable_count <= kMaxNamed) walk.unreadable.push_back(path);
    return;
  }
  ++walk.files;
  if (info.st_mtime > now + kTolerableSkewSeconds) walk.from_future = path;
}

Walk WalkThrough(const std::string& folder) {
  Walk walk;
  std::error_code error;
  const int64_t now = Now();
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator entry(folder, kOptions, error);
  while (!error && entry != fs::recursive_directory_iterator() && walk.files < kMaxFiles) {
    Look(*entry, now, walk);
    entry.increment(error);
  }
  return walk;
}

void ExamineRepository(const std::string& id, const std::string& folder, Report& report) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    report.Problem(id, fmt::format("{}: {}", folder, error ? error.message() : "not a folder"),
                   "A model repository is a folder with one folder for each model.");
    return;
  }
  if (::access(folder.c_str(), R_OK | X_OK) != 0) {
    report.Problem(id, fmt::format("{} may not be read by user {}", folder, ::geteuid()),
                   "Grant it, or start the server as another user.");
    return;
  }
  const Walk walk = WalkThrough(folder);
  if (walk.unreadable_count > 0) {
    report.Problem(id,
                   fmt::format("{} of {} may not be read by user {}: {}{}", walk.unreadable_count,
                               folder, ::geteuid(), fmt::join(walk.unreadable, ", "),
                               walk.unreadable_count > kMaxNamed ? ", ..." : ""),
                   "Grant it (chmod -R a+rX), or repair links that lead nowhere.");
    return;
  }
  report.Ok(id, fmt::format("{}: {} files and folders, {}", folder, walk.files,
                            ::access(folder.c_str(), W_OK) == 0
                                ? "readable and writable"
                                : "readable (a server need not write there)"));
  if (!walk.from_future.empty()) {
    report.Note(id + "_time", fmt::format("{} has a time in the future", walk.from_future),
                "Changes of files are found by their times: compare the clocks of this machine and "
                "of the one that wrote it.");
  }
}

}  // namespace

void ExamineTemporaryFolder(Report& report) {
  std::error_code error;
  const fs::path found = fs::temp_directory_path(error);
  const std::string folder = error ? "/tmp" : found.string();
  constexpr const char* kAdvice =
      "Make it writable, or set TMPDIR to a folder that is; a read-only container needs a tmpfs "
      "there (--tmpfs /tmp) for models in object stores and 'nereid serve'.";
  time_t changed = 0;
  const int failure = error ? error.value() : TryToWrite(folder, changed);
  if (failure != 0) {
    report.Problem("folders.temporary",
                   fmt::format("{} cannot be written to: {}", folder, std::strerror(failure)),
                   kAdvice);
    return;
  }
  struct statvfs info{};
  ::statvfs(folder.c_str(), &info);
  if ((info.f_flag & ST_NOEXEC) != 0) {
    report.Note("folders.temporary",
                fmt::format("{} is writable, but nothing in it may be run", folder),
                "Archives of Python environments and AOTInductor models (.pt2) are unpacked there "
                "and run: mount it without noexec, or set TMPDIR.");
  } else {
    report.Ok("folders.temporary", fmt::format("{} is writable", folder));
  }
  ExamineSpace(folder, info, report);
  const int64_t skew = changed - Now();
  if (std::abs(skew) > kTolerableSkewSeconds) {
    report.Note("folders.temporary_time",
                fmt::format("files in {} are {} s {} the system clock", folder, std::abs(skew),
                            skew > 0 ? "ahead of" : "behind"),
                "Times of files and the clock of this machine disagree: synchronise them.");
  }
}

void ExamineRepositories(const std::vector<std::string>& repositories, Report& report) {
  size_t number = 0;
  for (const std::string& one : repositories) {
    const std::string id = fmt::format("folders.repository{}", number++);
    if (one.find("://") != std::string::npos) {
      report.Ok(id, fmt::format("{} is in an object store, and not looked at", one));
    } else {
      ExamineRepository(id, one, report);
    }
  }
}

}  // namespace nereid::doctor
