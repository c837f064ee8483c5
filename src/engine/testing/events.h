// SPDX-License-Identifier: Apache-2.0
// The events of a test in order, and its log output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace nereid::engine {

// The list of events. Thread-safe.
class Events {
 public:
  void Add(std::string event);
  // Returns all events so far.
  std::vector<std::string> all() const;
  // Returns the events since the last Take.
  std::vector<std::string> Take();
  size_t Count(std::string_view event) const;
  // Waits (up to a minute) until `event` has happened since the last Take; returns false on
  // timeout.
  bool WaitFor(std::string_view event) const;

 private:
  mutable base::Mutex mutex_;
  mutable base::CondVar changed_;
  std::vector<std::string> events_ NEREID_GUARDED_BY(mutex_);
  size_t taken_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Redirects the process's log to a file as long as it exists.
class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // Returns how many lines so far contain `text`.
  size_t Count(std::string_view text) const;

 private:
  std::string path_;
};

}  // namespace nereid::engine
