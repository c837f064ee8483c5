// SPDX-License-Identifier: Apache-2.0
// How much a client may send. Stream windows are practically unlimited; the connection's window is
// updated as bytes arrive, unless the messages in service exceed the connection's budget.
// Incomplete messages never delay the update, so only messages in service can, and those need
// nothing more from the client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace nereid::http2 {

// Confined to the holder of its connection.
class ReceiveRoom {
 public:
  explicit ReceiveRoom(size_t budget) : budget_(budget) {}

  // Records that bytes of DATA frames arrived.
  void NoteReceived(size_t bytes) { unconsumed_ += bytes; }
  // Returns by how many bytes the client's window must be updated now.
  size_t Take() {
    if (unconsumed_ > 0 && held_ > budget_) {
      was_held_back_ = true;
      return 0;
    }
    return std::exchange(unconsumed_, 0);
  }

  // A message is in service. `of_stream` is its stream's share of the held bytes.
  void Hold(size_t& of_stream, size_t bytes) {
    of_stream += bytes;
    held_ += bytes;
  }
  // Releases `bytes` of it. A stream releases no more than it holds.
  void Release(size_t& of_stream, size_t bytes) {
    bytes = std::min(bytes, of_stream);
    of_stream -= bytes;
    held_ -= bytes;
  }
  // Returns whether the messages in service, without `waiting` bytes of them, exceed the budget.
  bool IsOverBudget(size_t waiting) const { return held_ - waiting > budget_; }

  // Returns whether the window was withheld at any time since the last call, for which the client
  // cannot be blamed.
  bool TakeHeldBack() {
    // What is withheld now may stay so until the next call without another Take.
    return std::exchange(was_held_back_, was_held_back_ && unconsumed_ > 0);
  }

 private:
  const size_t budget_;
  size_t held_ = 0;        // of messages delivered and not credited
  size_t unconsumed_ = 0;  // received, but not yet added to the client's window
  bool was_held_back_ = false;
};

}  // namespace nereid::http2
