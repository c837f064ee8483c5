// SPDX-License-Identifier: Apache-2.0
#include "isolation/channel.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/log.h"
#include "python_backend/call_ring.h"
#include "python_backend/wait.h"

namespace nereid::isolation {

using python::BlockHeader;
using python::BlockPool;
using python::Outcome;
using Clock = std::chrono::steady_clock;

namespace {

// How long a full ring of calls is waited for before it is looked at again.
constexpr std::chrono::milliseconds kRingPatience{10};

[[noreturn]] void EndWithoutMemory() {
  NEREID_LOG(kError, "the memory shared with the server is exhausted");
  base::FlushLog();
  _exit(1);
}

}  // namespace

base::Result<std::unique_ptr<Channel>> Channel::Open(int memory) {
  auto region = python::Region::Open(memory);
  if (!region.ok()) return base::InternalError(region.TakeError().message());
  return std::unique_ptr<Channel>(new Channel(std::move(region.value())));
}

// The latter half of the worker's part is for processes that a Python model forks, which an
// isolated model does not have.
Channel::Channel(std::unique_ptr<python::Region> region)
    : region_(std::move(region)),
      blocks_(*region_, {.begin = region_->worker_begin(), .end = region_->size()}) {}

base::Result<BlockPool::Block> Channel::Allocate(uint64_t size) {
  auto block = blocks_.Allocate(size);
  if (!block.ok()) return base::UnavailableError(block.TakeError().message());
  return std::move(block.value());
}

BlockHeader* Channel::Write(Message message, uint32_t kind) {
  if (message.records.empty()) return nullptr;
  auto block = blocks_.Allocate(message.records.size());
  if (!block.ok()) EndWithoutMemory();
  BlockPool::Block& records = block.value();
  std::memcpy(records.payload(), message.records.data(), message.records.size());
  records.Share();
  BlockHeader* const header = &records.header();
  header->size = message.records.size();
  header->kind = kind;
  // Once it is listed here, any thread may find it released and write the next message to it.
  const base::MutexLock lock(sent_mutex_);
  std::erase_if(sent_, [](const Sent& sent) {
    return sent.records.header().state.load(std::memory_order_acquire) == python::kBlockFree;
  });
  sent_.push_back({std::move(records), std::move(message.tensors)});
  return header;
}

void Channel::Finish(const Item& current, Outcome outcome, Message result) {
  python::Mailbox& done = region_->control().done;
  const uint64_t size = result.records.size();
  const BlockHeader* const header = Write(std::move(result));
  done.kind = static_cast<uint32_t>(outcome);
  done.ticket = current.ticket;
  done.offset = header == nullptr ? 0 : OffsetOf(header);
  done.size = size;
  python::Signal(done.word, done.sleeping);
}

Channel::Item Channel::FirstWork() { return NextWork({}, Outcome::kOk, {}); }

Channel::Item Channel::NextWork(const Item& current, Outcome outcome, Message result) {
  Finish(current, outcome, std::move(result));
  python::Mailbox& work = region_->control().work;
  // Polling pays if work follows work; the more often it failed, the less often it is tried.
  const bool looks = misses_ == 0 || ++skipped_ >= misses_;
  const Clock::time_point start = Clock::now();
  uint32_t word = current.ticket;
  if (looks) {
    skipped_ = 0;
    word = python::WaitWhile(work.word, work.sleeping, current.ticket, python::SpinTime());
    const bool was_soon = Clock::now() - start <= python::SpinTime();
    misses_ = was_soon ? 0 : std::min(misses_ * 2 + 1, 63u);
  }
  while (word == current.ticket) {
    word = python::WaitWhile(work.word, work.sleeping, current.ticket, {});
  }
  return {static_cast<python::Work>(work.kind), word, work.offset, work.size};
}

void Channel::EndWork(const Item& current, Outcome outcome, Message result) {
  Finish(current, outcome, std::move(result));
}

Channel::Item Channel::NextQuestion(uint32_t ticket) {
  python::Mailbox& question = region_->control().question;
  uint32_t word = ticket;
  while (word == ticket) word = python::WaitWhile(question.word, question.sleeping, ticket, {});
  return {static_cast<python::Work>(question.kind), word, question.offset, question.size};
}

void Channel::Answer(const Item& question, Outcome outcome, Message result) {
  python::Mailbox& reply = region_->control().reply;
  const uint64_t size = result.records.size();
  const BlockHeader* const header = Write(std::move(result));
  reply.kind = static_cast<uint32_t>(outcome);
  reply.ticket = question.ticket;
  reply.offset = header == nullptr ? 0 : OffsetOf(header);
  reply.size = size;
  python::Signal(reply.word, reply.sleeping);
}

void Channel::Call(python::Call kind, Message payload) { Post(kind, std::move(payload)); }

void Channel::AwaitSent(uint64_t request) {
  Message message;
  message.Append(request);
  BlockHeader* const header = Post(python::Call::kAwaitSent, std::move(message));
  while (header->state.load(std::memory_order_acquire) == python::kBlockInUse) {
    python::WaitWhile(header->state, header->sleeping, python::kBlockInUse, {});
  }
  python::Release(header);
}

BlockHeader* Channel::Post(python::Call kind, Message payload) {
  BlockHeader* const header = Write(std::move(payload), static_cast<uint32_t>(kind));
  if (header == nullptr) return nullptr;
  python::Control& control = region_->control();
  const base::MutexLock lock(ring_mutex_);
  const uint32_t head = control.ring_head.load(std::memory_order_relaxed);
  for (;;) {
    const uint32_t tail = control.ring_tail.load(std::memory_order_acquire);
    if (head - tail < python::kRingCapacity) break;
    python::WaitWhile(control.ring_tail, control.ring_waiting, tail, {},
                      Clock::now() + kRingPatience);
  }
  control.ring[head % python::kRingCapacity] = OffsetOf(header);
  control.ring_head.store(head + 1, std::memory_order_release);
  python::Signal(control.ring_bell, control.ring_sleeping);
  return header;
}

std::span<const char> Channel::Payload(const Item& item) const {
  if (item.offset == 0) return {};
  return {region_->At(item.offset), static_cast<size_t>(item.size)};
}

void Channel::LetGo(uint64_t payload_offset) const {
  if (payload_offset == 0) return;
  char* const header = region_->At(payload_offset - sizeof(BlockHeader));
  python::Release(reinterpret_cast<BlockHeader*>(header));
}

}  // namespace nereid::isolation
