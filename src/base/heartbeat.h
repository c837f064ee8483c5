// SPDX-License-Identifier: Apache-2.0
// What a thread shows of itself so that a watchdog (base/watchdog.h) can tell whether it gets on
// with its work. Costs a few instructions and neither a lock nor a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/types.h>
#include <unistd.h>

namespace nereid::base {

// The kernel's number of the calling thread. The system is asked once for each thread.
inline pid_t ThisThreadId() {
  static constinit thread_local pid_t id = 0;
  if (id == 0) [[unlikely]]
    id = ::gettid();
  return id;
}

// The heartbeat of a thread, or of work that threads do one after the other. Only the thread that
// works may call the first three functions; any thread may read.
//
// All accesses are relaxed: the numbers stand alone, and a reader only compares two readings that
// are seconds apart.
class Heartbeat {
 public:
  // Begins to work on the calling thread. REQUIRES: at rest.
  void Start() {
    thread_.store(ThisThreadId(), std::memory_order_relaxed);
    Add(1);
  }
  // Goes on working, perhaps on another thread.
  void Beat() {
    thread_.store(ThisThreadId(), std::memory_order_relaxed);
    Add(2);
  }
  // Begins to wait for work; a rest may last for ever. REQUIRES: working.
  void Rest() { Add(1); }

  // Changes whenever the thread gets on; odd while it works.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  bool is_working() const { return count() % 2 == 1; }
  // The thread that works, or was the last to work; 0: none yet.
  pid_t thread() const { return thread_.load(std::memory_order_relaxed); }

 private:
  // One thread writes at a time, so that this need not be one atomic operation.
  void Add(uint64_t steps) { count_.store(count() + steps, std::memory_order_relaxed); }

  std::atomic<uint64_t> count_{0};
  std::atomic<pid_t> thread_{0};
};

}  // namespace nereid::base
