// SPDX-License-Identifier: Apache-2.0
// The last messages of the process log, kept in bounded memory for people who look at the server
// in a browser. Nothing is kept until somebody asks for it with KeepRecentLog.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"

namespace nereid::base {

// One message, without the line's head. A value type.
struct RecentMessage {
  uint64_t id = 0;  // counts up from 1
  int64_t unix_ms = 0;
  LogLevel level = LogLevel::kInfo;
  std::string source;  // "engine.cc:12"
  std::string text;    // valid UTF-8; long ones are cut
};

// Thread-safe.
class RecentLog {
 public:
  static constexpr size_t kMaxMessages = 1000;
  static constexpr size_t kMaxBytes = size_t{512} << 10;     // of texts and sources
  static constexpr size_t kMaxTextBytes = size_t{16} << 10;  // of one message

  // Keeps a message, instead of the oldest ones if there is no room.
  void Add(LogLevel level, std::string source, std::string_view text, int64_t unix_ms);
  // Returns the messages with higher ids, the oldest first; all if `id` is of another process.
  std::vector<RecentMessage> After(uint64_t id) const;

 private:
  static size_t SizeOf(const RecentMessage& message) {
    return message.source.size() + message.text.size();
  }

  mutable Mutex mutex_;
  std::deque<RecentMessage> messages_ NEREID_GUARDED_BY(mutex_);
  uint64_t last_id_ NEREID_GUARDED_BY(mutex_) = 0;
  size_t bytes_ NEREID_GUARDED_BY(mutex_) = 0;
};

// Keeps messages of the process log from now on. They are kept until the process ends.
void KeepRecentLog();
// What KeepRecentLog has kept.
const RecentLog& RecentLogOfProcess();

}  // namespace nereid::base
