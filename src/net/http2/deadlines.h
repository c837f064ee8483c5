// SPDX-License-Identifier: Apache-2.0
// The deadlines of the calls of one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace nereid::http2 {

// A point in time that never comes.
inline constexpr uint64_t kNever = UINT64_MAX;

// Pure logic on clock readings in nanoseconds. Confined to the holder of its connection.
class Deadlines {
 public:
  void Add(uint64_t at_ns, int32_t stream_id);
  // Returns a stream whose deadline has passed, each once. It may have ended already, because ends
  // of streams are not reported here.
  std::optional<int32_t> TakeDue(uint64_t now_ns);
  // Returns the first deadline; kNever without one.
  uint64_t next_ns() const { return entries_.empty() ? kNever : entries_.front().at_ns; }
  // Forgets streams that have ended, if there are enough of them: most calls end in time.
  // `open_count` streams are open.
  void Prune(size_t open_count, const std::function<bool(int32_t stream_id)>& is_open);

 private:
  struct Entry {
    uint64_t at_ns;
    int32_t stream_id;
    bool operator<(const Entry& other) const { return at_ns > other.at_ns; }  // earliest on top
  };

  std::vector<Entry> entries_;  // a heap
};

}  // namespace nereid::http2
