// SPDX-License-Identifier: Apache-2.0
// Which thread has a connection. No thread waits for it: a thread that finds it taken leaves a
// note, and the thread that has it reads the notes before it releases it.
#pragma once

#include <atomic>
#include <cstdint>

namespace nereid::http2 {

// Thread-safe. Each holder sees everything that the previous one did.
class ConnectionTurn {
 public:
  // What LetGo found.
  enum class Next : uint8_t {
    kFree,     // nothing: the calling thread has released it
    kOrders,   // there are orders; the calling thread still has the connection, as with
    kReactor,  // the reactor wants it
  };

  // Each of these three returns true if the calling thread has the connection now. Otherwise
  // another thread has it, and will find the orders, or that the reactor wants the connection.
  bool TryTake() { return !(state_.fetch_or(kTaken) & kTaken); }
  bool TryTakeForOrders() { return !(state_.fetch_or(kTaken | kOrders) & kTaken); }
  bool TryTakeForReactor() { return !(state_.fetch_or(kTaken | kReactor) & kTaken); }
  // Announces orders, for which the calling thread does not want the connection. Returns true if
  // another thread has it and will find them; after false, some thread must take it.
  bool NoteOrders() { return state_.fetch_or(kOrders) & kTaken; }

  // For the thread that has the connection: the reactor must have it next.
  void CallReactor() { state_.fetch_or(kReactor); }
  // Releases the connection unless there is a note, which it then clears.
  Next LetGo() {
    for (uint32_t state = state_.load();;) {
      if (state & kOrders) {
        state_.fetch_and(~kOrders);
        return Next::kOrders;
      }
      if (state & kReactor) {
        state_.fetch_and(~kReactor);
        return Next::kReactor;
      }
      if (state_.compare_exchange_strong(state, 0)) return Next::kFree;
    }
  }

 private:
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kOrders = 2;
  static constexpr uint32_t kReactor = 4;

  std::atomic<uint32_t> state_{0};
};

}  // namespace nereid::http2
