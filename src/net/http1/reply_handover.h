// SPDX-License-Identifier: Apache-2.0
// How a thread that has written a reply and the reactor hand over an exchange without waiting for
// each other or posting needlessly. The thread marks the reply as written and touches nothing more;
// the reactor finds the mark when the client's next bytes arrive. Only if the reactor has to know
// of the reply at once (pipelined bytes, a disconnect, draining) does it request a notice, which
// the thread then posts.
#pragma once

#include <atomic>
#include <cstdint>

namespace nereid::http1 {

// Any thread may call MarkReplied and is_replied; everything else is for the reactor. The relaxed
// stores need no pairing: before the handler is called and after the reply no other thread has the
// exchange, and within the handler's call none has it any more.
class ReplyHandover {
 public:
  // A request is passed to its handler.
  void Begin() { phase_.store(kHandling, std::memory_order_relaxed); }
  // The exchange is over.
  void End() {
    phase_.store(kReplied, std::memory_order_relaxed);
    is_notice_requested_ = false;
  }

  // Requests a notice. Returns false if the reply has been written already: none will come.
  bool RequestNotice() {
    if (is_notice_requested_) return true;
    uint8_t expected = kHandling;
    is_notice_requested_ = phase_.compare_exchange_strong(expected, kNotify);
    return is_notice_requested_;
  }
  bool is_notice_requested() const { return is_notice_requested_; }

  // Marks the reply as written. Returns true if the reactor wants a notice; otherwise the exchange
  // belongs to the reactor from now on, and nothing of it may be touched. What the calling thread
  // did before is visible to the reactor once is_replied() is true.
  bool MarkReplied() { return phase_.exchange(kReplied) == kNotify; }
  // Marks the reply on the reactor's own thread, while the handler is being called.
  void MarkRepliedInHandler() { phase_.store(kReplied, std::memory_order_relaxed); }
  bool is_replied() const { return phase_.load() == kReplied; }

 private:
  enum Phase : uint8_t { kHandling, kNotify, kReplied };

  std::atomic<uint8_t> phase_{kReplied};
  bool is_notice_requested_ = false;  // phase_ was set to kNotify
};

}  // namespace nereid::http1
