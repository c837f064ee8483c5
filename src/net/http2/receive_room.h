// SPDX-License-Identifier: Apache-2.0
// How much a client may send. Stream windows are practically unlimited; the connection's window is
// given back as bytes arrive, unless the messages in service exceed the connection's budget.
// Incomplete messages never hold room back, so the messages in service, which need nothing more
// from the client, are all that anybody waits for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace nereid::http2 {

// Confined to the holder of its connection.
class ReceiveRoom {
 public:
  explicit ReceiveRoom(size_t budget) : budget_(budget) {}

  // Bytes of DATA frames came.
  void NoteReceived(size_t bytes) { unconsumed_ += bytes; }
  // For how many of them the client is to be given room again, now.
  size_t Take() {
    if (unconsumed_ > 0 && held_ > budget_) {
      was_held_back_ = true;
      return 0;
    }
    return std::exchange(unconsumed_, 0);
  }

  // A message is in service. `of_stream` is the part of its stream in what is held.
  void Hold(size_t& of_stream, size_t bytes) {
    of_stream += bytes;
    held_ += bytes;
  }
  // `bytes` of it are not any more. A stream gives back no more than it has.
  void Release(size_t& of_stream, size_t bytes) {
    bytes = std::min(bytes, of_stream);
    of_stream -= bytes;
    held_ -= bytes;
  }
  // Whether the messages in service, without `waiting` bytes of them, exceed the budget.
  bool IsOverBudget(size_t waiting) const { return held_ - waiting > budget_; }

  // Whether room was held back since the last call, for which the client cannot be blamed.
  bool TakeHeldBack() { return std::exchange(was_held_back_, false); }

 private:
  const size_t budget_;
  size_t held_ = 0;        // of messages delivered and not credited
  size_t unconsumed_ = 0;  // received, for which the client was not given room yet
  bool was_held_back_ = false;
};

}  // namespace nereid::http2
