// SPDX-License-Identifier: Apache-2.0
// The server's end of the ring through which a worker makes calls, and the replies to them.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "backend_kit/mutex.h"
#include "python_backend/region.h"

namespace nereid::python {

// A call of a worker: the block that describes it, which stays until it is replied to or released.
struct CallBlock {
  BlockHeader* header;
  Call kind;
  std::span<const char> payload;
};

// The calls of one worker. One thread takes and handles them; any thread may wait until they are
// handled.
class CallRing {
 public:
  using Clock = std::chrono::steady_clock;

  // `region` outlives the ring.
  explicit CallRing(const Region& region) : region_(region) {}
  CallRing(const CallRing&) = delete;
  CallRing& operator=(const CallRing&) = delete;

  // --- For the thread that handles the calls ---

  // Returns the next call, if there is one, or an error if the worker wrote something invalid.
  backend::Result<std::optional<CallBlock>> Take();
  // Records that the call that was taken last is handled.
  void NoteHandled();
  // A number that changes with every call, and a wait until it differs from `seen`.
  uint32_t bell() const;
  void WaitForBell(uint32_t seen);
  // After this no call is taken.
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
  uint32_t taken_ = 0;  // the ring's tail after the last call; confined to the thread of Take
  std::atomic<uint32_t> handled_{0};
  std::atomic<bool> is_open_{true};
  backend::Mutex mutex_;
  backend::CondVar closed_;
  bool is_closed_ NEREID_KIT_GUARDED_BY(mutex_) = false;
};

// Reply completes a call; any thread may call it. The text is written into a block of `blocks`
// unless it is in a block already.
void Reply(BlockHeader* call, Outcome outcome);
void Reply(BlockHeader* call, Outcome outcome, const BlockPool::Block& block, uint64_t size);
void Reply(BlockPool& blocks, BlockHeader* call, Outcome outcome, std::string_view text);
// Releases a block of the worker: a call without a reply, or the result of some work.
void Release(BlockHeader* block);

}  // namespace nereid::python
