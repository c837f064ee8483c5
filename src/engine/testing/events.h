// SPDX-License-Identifier: Apache-2.0
// What happened in a test, in its order, and what the log said of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace nereid::engine {

// Thread-safe.
class Events {
 public:
  void Add(std::string event);
  // Everything so far.
  std::vector<std::string> all() const;
  // Everything since the last Take.
  std::vector<std::string> Take();
  size_t Count(std::string_view event) const;
  // Waits (up to a minute) until `event` has happened since the last Take; false on the timeout.
  bool WaitFor(std::string_view event) const;

 private:
  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  std::vector<std::string> events_ NEREID_GUARDED_BY(mutex_);
  size_t taken_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Leads the process's log to a file as long as it exists.
class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // The lines so far that contain `text`.
  size_t Count(std::string_view text) const;

 private:
  std::string path_;
};

}  // namespace nereid::engine
