// SPDX-License-Identifier: Apache-2.0
// How a thread that has written a reply and the reactor give an exchange to each other, so that
// neither waits for the other nor posts without need. The thread marks the reply as written and
// touches nothing more; the reactor finds the mark when the client's next bytes arrive. Only if the
// reactor has a reason to hear of the reply at once (pipelined bytes, a disconnect, draining) does
// it ask for a notice, which the thread then posts.
#pragma once

#include <atomic>
#include <cstdint>

namespace nereid::http1 {

// MarkReplied and is_replied are for any thread, everything else is for the reactor. The relaxed
// stores pair with nothing: before the handler is called and after the reply no other thread has
// the exchange, and within the handler's call none has it any more.
class ReplyHandover {
 public:
  // A request goes to its handler.
  void Begin() { phase_.store(kHandling, std::memory_order_relaxed); }
  // The exchange is over.
  void End() {
    phase_.store(kReplied, std::memory_order_relaxed);
    is_notice_requested_ = false;
  }

  // Asks for a notice. False when the reply has been written already: none will come.
  bool RequestNotice() {
    if (is_notice_requested_) return true;
    uint8_t expected = kHandling;
    is_notice_requested_ = phase_.compare_exchange_strong(expected, kNotify);
    return is_notice_requested_;
  }
  bool is_notice_requested() const { return is_notice_requested_; }

  // The reply has been written. True when the reactor wants a notice; otherwise the exchange is the
  // reactor's from now on, and nothing of it may be touched. What the calling thread did before is
  // visible to the reactor once is_replied() is true.
  bool MarkReplied() { return phase_.exchange(kReplied) == kNotify; }
  // The same on the reactor's own thread, while the handler is called.
  void MarkRepliedInHandler() { phase_.store(kReplied, std::memory_order_relaxed); }
  bool is_replied() const { return phase_.load() == kReplied; }

 private:
  enum Phase : uint8_t { kHandling, kNotify, kReplied };

  std::atomic<uint8_t> phase_{kReplied};
  bool is_notice_requested_ = false;  // phase_ was moved to kNotify
};

}  // namespace nereid::http1
