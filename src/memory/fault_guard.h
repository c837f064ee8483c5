// SPDX-License-Identifier: Apache-2.0
// Keeps the process alive when memory that it shares with a client disappears.
//
// The owner of a shared memory object may shrink it while it is mapped here, and the next access to
// the missing part raises SIGBUS, which ends a process. The same happens when a page of a sparse
// object is touched first and its file system is full. What does not help: checking the size before
// each use, because it can change between the check and the access, or during a long execution;
// seals, because objects of shm_open are made with F_SEAL_SEAL and accept none; reading with system
// calls, because it would be a copy and backends read by themselves.
//
// So the signal is handled. The handler finds the range that the address belongs to, puts private
// zero pages in place of the whole of it (one call, atomic for all other threads) and marks it
// broken; the access is then repeated and succeeds. No client sees the zeros: is_broken() is
// checked before a response is sent. Any other SIGBUS goes to the previous handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nereid::memory {

namespace fault_internal {
struct Slot;
}  // namespace fault_internal

// Guards one mapping that may lose its pages; covers whole pages. Must be destroyed before the
// mapping ends. The first guard of the process installs the handler. Thread-compatible; is_broken()
// is thread-safe.
class FaultGuard {
 public:
  // `data` is where the mapping begins.
  FaultGuard(void* data, size_t size);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // Whether missing memory in the range was ever accessed. Once true, it stays true.
  bool is_broken() const;

 private:
  fault_internal::Slot& slot_;
};

}  // namespace nereid::memory
