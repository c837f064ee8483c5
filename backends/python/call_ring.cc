// SPDX-License-Identifier: Apache-2.0
#include "python_backend/call_ring.h"

#include <cstring>

#include "python_backend/vitals.h"
#include "python_backend/wait.h"

namespace nereid::python {

using backend::Error;
using backend::Result;

Result<std::optional<CallBlock>> CallRing::Take() {
  Control& control = region_.control();
  const uint32_t tail = control.ring_tail.load(std::memory_order_relaxed);
  const uint32_t head = control.ring_head.load(std::memory_order_acquire);
  if (head == tail) return std::optional<CallBlock>();
  // A call may pass on what the worker found in its work. ThreadSanitizer sees only this process,
  // and so not that the worker ordered the two.
  control.work.word.load(std::memory_order_acquire);
  if (head - tail > kRingCapacity) return Error::Internal(kCorruption);
  const uint64_t offset = std::atomic_ref(control.ring[tail % kRingCapacity]).load();
  taken_ = tail + 1;
  control.ring_tail.store(taken_, std::memory_order_release);
  if (control.ring_waiting.load() != 0) Publish(control.ring_tail, control.ring_waiting, taken_);
  if (offset % alignof(BlockHeader) != 0 || !region_.Holds(offset, sizeof(BlockHeader))) {
    return Error::Internal(kCorruption);
  }
  auto* const header = reinterpret_cast<BlockHeader*>(region_.At(offset));
  // The block may be that of an earlier call, which another thread replied to before the worker
  // used it again: this, too, ThreadSanitizer sees only so.
  header->state.load(std::memory_order_acquire);
  const auto kind = static_cast<Call>(std::atomic_ref(header->kind).load());
  const uint64_t size = std::atomic_ref(header->size).load();
  if (!region_.Holds(offset + sizeof(BlockHeader), size)) return Error::Internal(kCorruption);
  const std::span<const char> payload{reinterpret_cast<const char*>(header + 1),
                                      static_cast<size_t>(size)};
  return std::optional<CallBlock>({header, kind, payload});
}

void CallRing::NoteHandled() {
  handled_.store(taken_, std::memory_order_release);
  handled_.notify_all();
}

uint32_t CallRing::bell() const {
  return region_.control().ring_bell.load(std::memory_order_acquire);
}

void CallRing::WaitForBell(uint32_t seen) {
  Control& control = region_.control();
  WaitWhile(control.ring_bell, control.ring_sleeping, seen, std::chrono::nanoseconds(0));
}

void CallRing::Close() {
  is_open_.store(false);
  // Changes the value, so that no thread continues to wait.
  handled_.fetch_add(1u << 31);
  handled_.notify_all();
  const backend::MutexLock lock(mutex_);
  is_closed_ = true;
  closed_.NotifyAll();
}

bool CallRing::HasOpenCalls() const {
  const uint32_t made = region_.control().ring_head.load(std::memory_order_acquire);
  return static_cast<int32_t>(made - handled_.load(std::memory_order_acquire)) > 0;
}

void CallRing::WaitForCalls() const {
  const uint32_t made = region_.control().ring_head.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t handled = handled_.load(std::memory_order_acquire);
    if (static_cast<int32_t>(made - handled) <= 0 || !is_open_.load()) return;
    handled_.wait(handled);
  }
}

void CallRing::WaitForClose(Clock::time_point deadline) {
  const backend::MutexLock lock(mutex_);
  while (!is_closed_ && closed_.WaitUntil(mutex_, deadline)) {
  }
}

void Reply(BlockHeader* call, Outcome outcome) {
  call->outcome = static_cast<uint32_t>(outcome);
  call->reply_offset = 0;
  call->reply_size = 0;
  Publish(call->state, call->sleeping, kBlockReplied);
}

void Reply(BlockHeader* call, Outcome outcome, const BlockPool::Block& block, uint64_t size) {
  block.Share();
  call->outcome = static_cast<uint32_t>(outcome);
  call->reply_offset = block.offset();
  call->reply_size = size;
  Publish(call->state, call->sleeping, kBlockReplied);
}

void Reply(BlockPool& blocks, BlockHeader* call, Outcome outcome, std::string_view text) {
  auto block = blocks.Allocate(text.size());
  if (!block.ok()) {
    block.TakeError().Ignore();
    return Reply(call, Outcome::kError);
  }
  std::memcpy(block.value().payload(), text.data(), text.size());
  Reply(call, outcome, block.value(), text.size());
}

void Release(BlockHeader* block) { block->state.store(kBlockFree, std::memory_order_release); }

}  // namespace nereid::python
