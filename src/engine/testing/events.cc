// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/events.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace nereid::engine {

void Events::Add(std::string event) {
  base::MutexLock lock(mutex_);
  events_.push_back(std::move(event));
  changed_.NotifyAll();
}

std::vector<std::string> Events::all() const {
  base::MutexLock lock(mutex_);
  return events_;
}

std::vector<std::string> Events::Take() {
  base::MutexLock lock(mutex_);
  std::vector<std::string> taken(events_.begin() + static_cast<std::ptrdiff_t>(taken_),
                                 events_.end());
  taken_ = events_.size();
  return taken;
}

size_t Events::Count(std::string_view event) const {
  base::MutexLock lock(mutex_);
  return static_cast<size_t>(std::ranges::count(events_, event));
}

bool Events::WaitFor(std::string_view event) const {
  const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  base::MutexLock lock(mutex_);
  const auto has_happened = [&]() NEREID_REQUIRES(mutex_) {
    const auto first = events_.begin() + static_cast<std::ptrdiff_t>(taken_);
    return std::find(first, events_.end(), event) != events_.end();
  };
  while (!has_happened()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
  return true;
}

CapturedLog::CapturedLog() {
  path_ = (std::filesystem::temp_directory_path() / "nereid-engine-log-XXXXXX").string();
  const int file = ::mkstemp(path_.data());
  NEREID_CHECK(file >= 0);
  ::close(file);
  NEREID_CHECK(base::ConfigureLog({.file = path_}).ok());
}

CapturedLog::~CapturedLog() {
  static_cast<void>(base::ConfigureLog({}));
  std::filesystem::remove(path_);
}

size_t CapturedLog::Count(std::string_view text) const {
  base::FlushLog();
  std::ifstream file(path_);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(text) != std::string::npos;
  return count;
}

}  // namespace nereid::engine
