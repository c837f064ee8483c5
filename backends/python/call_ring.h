// SPDX-License-Identifier: Apache-2.0
// The server's end of the ring through which a worker makes calls, and how calls are answered.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "backend_kit/mutex.h"
#include "python_backend/region.h"

namespace nereid::python {

// What a worker asks for: the block with the call, which stays until it is replied to or released.
struct CallBlock {
  BlockHeader* header;
  Call kind;
  std::span<const char> payload;
};

// One thread takes calls and handles them; any thread may wait for that.
class CallRing {
 public:
  using Clock = std::chrono::steady_clock;

  // `region` outlives this.
  explicit CallRing(const Region& region) : region_(region) {}
  CallRing(const CallRing&) = delete;
  CallRing& operator=(const CallRing&) = delete;

  // --- For the thread that handles the calls ---

  // The next call, if there is one; an error where the worker wrote what cannot be one.
  backend::Result<std::optional<CallBlock>> Take();
  // The call that was taken last is handled.
  void NoteHandled();
  // A number that changes with every call, and the wait until it is not `seen` any more.
  uint32_t bell() const;
  void WaitForBell(uint32_t seen);
  // No call is taken any more.
  void Close();

  // --- For any other thread ---

  // Whether there is a call that the worker has made and that is not handled.
  bool HasOpenCalls() const;
  // Waits until every call that the worker had made when this began was handled, or Close.
  void WaitForCalls() const;
  // Waits for Close, or until `deadline`.
  void WaitForClose(Clock::time_point deadline);

 private:
  const Region& region_;
  uint32_t taken_ = 0;  // the ring's tail after the last call; of the thread that takes them
  std::atomic<uint32_t> handled_{0};
  std::atomic<bool> is_open_{true};
  backend::Mutex mutex_;
  backend::CondVar closed_;
  bool is_closed_ NEREID_KIT_GUARDED_BY(mutex_) = false;
};

// Each answers a call, from any thread. What is said is put into a block of `blocks`, if it is not
// in one.
void Reply(BlockHeader* call, Outcome outcome);
void Reply(BlockHeader* call, Outcome outcome, const BlockPool::Block& block, uint64_t size);
void Reply(BlockPool& blocks, BlockHeader* call, Outcome outcome, std::string_view text);
// Gives back a block of the worker's: a call that wants no reply, or the result of some work.
void Release(BlockHeader* block);

}  // namespace nereid::python
