// SPDX-License-Identifier: Apache-2.0
#include "base/recent_log.h"

#include <algorithm>
#include <utility>

namespace nereid::base {

void RecentLog::Add(LogLevel level, std::string source, std::string_view text, int64_t unix_ms) {
  constexpr std::string_view kCutMark = "... (cut)";
  RecentMessage message{.unix_ms = unix_ms, .level = level, .source = std::move(source)};
  size_t size = std::min(text.size(), kMaxTextBytes);
  // No character is cut in two.
  while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) --size;
  message.text = text.substr(0, size);
  if (size < text.size()) message.text += kCutMark;
  MutexLock lock(mutex_);
  message.id = ++last_id_;
  bytes_ += SizeOf(message);
  messages_.push_back(std::move(message));
  while (messages_.size() > kMaxMessages || bytes_ > kMaxBytes) {
    bytes_ -= SizeOf(messages_.front());
    messages_.pop_front();
  }
}

std::vector<RecentMessage> RecentLog::After(uint64_t id) const {
  MutexLock lock(mutex_);
  if (id > last_id_) id = 0;
  // Ids have no gaps.
  const uint64_t known = last_id_ - messages_.size();
  const size_t skipped = id <= known ? 0 : static_cast<size_t>(id - known);
  return {messages_.begin() + static_cast<std::ptrdiff_t>(skipped), messages_.end()};
}

}  // namespace nereid::base
