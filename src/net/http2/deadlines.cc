// SPDX-License-Identifier: Apache-2.0
#include "http2/deadlines.h"

#include <algorithm>

namespace nereid::http2 {

void Deadlines::Add(uint64_t at_ns, int32_t stream_id) {
  entries_.push_back({at_ns, stream_id});
  std::push_heap(entries_.begin(), entries_.end());
}

std::optional<int32_t> Deadlines::TakeDue(uint64_t now_ns) {
  if (entries_.empty() || entries_.front().at_ns > now_ns) return std::nullopt;
  const int32_t stream_id = entries_.front().stream_id;
  std::pop_heap(entries_.begin(), entries_.end());
  entries_.pop_back();
  return stream_id;
}

void Deadlines::Prune(size_t open_count, const std::function<bool(int32_t stream_id)>& is_open) {
  if (entries_.size() <= 2 * open_count + 64) return;
  std::erase_if(entries_, [&](const Entry& entry) { return !is_open(entry.stream_id); });
  std::make_heap(entries_.begin(), entries_.end());
}

}  // namespace nereid::http2
