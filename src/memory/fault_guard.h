// SPDX-License-Identifier: Apache-2.0
// Keeps the process alive when memory that it shares with a client is taken away under it.
//
// Whoever made a shared memory object may shrink it while it is mapped here, and the next access to
// what is gone raises SIGBUS, which ends a process. The same happens when a page of a sparse object
// is touched first and its file system is full. What does not help: asking for the size before each
// use, because it can change between the question and the access, or during a long execution;
// seals, because objects of shm_open are made with F_SEAL_SEAL and take none; reading with system
// calls, because it would be a copy and backends read by themselves.
//
// So the signal is handled. The handler finds the range that the address belongs to, puts private
// zero pages in place of the whole of it (one call, atomic for all other threads) and marks it
// broken; the access is then repeated and succeeds. Nothing that comes of it reaches anybody:
// whoever answers a request asks is_broken() first. Any other SIGBUS goes where it would have gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nereid::memory {

namespace fault_internal {
struct Slot;
}  // namespace fault_internal

// One mapping that may lose its pages; covers whole pages. From construction to destruction, which
// is before the mapping ends. Installs the handler when it is the first of the process.
// Thread-compatible, is_broken() thread-safe.
class FaultGuard {
 public:
  // `data` is where the mapping begins.
  FaultGuard(void* data, size_t size);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Part of the range was touched and was not there. Stays so.
  bool is_broken() const;

 private:
  fault_internal::Slot& slot_;
};

}  // namespace nereid::memory
