// SPDX-License-Identifier: Apache-2.0
// Counts the messages of a call that have not left its queue. Threads that send use it to wait for
// a client that reads slowly.
#pragma once

#include <atomic>
#include <cstddef>

namespace nereid::http2 {

// Thread-safe. A thread that calls Want and then finds unsent messages misses none that leaves
// after: either messages() counts it as gone, or Remove reports that a notification is wanted (both
// are sequentially consistent).
class UnsentCount {
 public:
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  size_t messages() const { return messages_.load(std::memory_order_seq_cst); }
  // Sets whether Remove reports it.
  void Want(bool wanted) { is_wanted_.store(wanted, std::memory_order_seq_cst); }

  // Counts a message on its way to the queue.
  void Add(size_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    messages_.fetch_add(1, std::memory_order_relaxed);
  }
  // Counts a message that has left. Returns whether a notification is wanted.
  bool Remove(size_t bytes) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    messages_.fetch_sub(1, std::memory_order_seq_cst);
    return is_wanted_.load(std::memory_order_seq_cst);
  }
  // No message will leave any more.
  void Clear() {
    bytes_.store(0, std::memory_order_relaxed);
    messages_.store(0, std::memory_order_release);
  }
  void Recycle() {
    Clear();
    is_wanted_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> messages_{0};
  std::atomic<bool> is_wanted_{false};
};

}  // namespace nereid::http2
