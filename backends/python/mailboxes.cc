// SPDX-License-Identifier: Apache-2.0
#include "python_backend/mailboxes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "python_backend/decode.h"
#include "python_backend/wait.h"

namespace nereid::python {

using backend::Error;
using backend::Result;
using backend::StrCat;
using std::chrono::nanoseconds;

Mailboxes::Ticket Mailboxes::Put(Work work, uint64_t offset, uint64_t size) {
  const uint32_t seen = from_.word.load(std::memory_order_acquire);
  to_.kind = static_cast<uint32_t>(work);
  to_.offset = offset;
  to_.size = size;
  const uint32_t number = to_.word.load(std::memory_order_relaxed) + 1;
  Signal(to_.word, to_.sleeping);
  return {number, seen};
}

bool Mailboxes::Look(Ticket ticket, nanoseconds patience) const {
  return LookWhile(from_.word, ticket.seen, patience) != ticket.seen;
}

Result<WorkResult> Mailboxes::Await(Ticket ticket, nanoseconds spin, Clock::time_point deadline) {
  for (;;) {
    if (!vitals_.is_alive()) return Error::Internal(vitals_.DeathMessage());
    const uint32_t word = WaitWhile(from_.word, from_.sleeping, ticket.seen, spin, deadline);
    if (word == ticket.seen) {
      if (Clock::now() < deadline) continue;
      return Error::Unavailable(StrCat(vitals_.label(), " did not respond in time"));
    }
    ticket.seen = word;
    if (IsFor(ticket)) return Read();
  }
}

Result<WorkResult> Mailboxes::Read() {
  WorkResult result{.outcome = static_cast<Outcome>(from_.kind)};
  const uint64_t at = std::atomic_ref(from_.offset).load();
  const uint64_t size = std::atomic_ref(from_.size).load();
  if (at == 0) return result;
  if (at % alignof(BlockHeader) != 0 || !region_.Holds(at, sizeof(BlockHeader)) ||
      !region_.Holds(at + sizeof(BlockHeader), size)) {
    vitals_.Condemn(kCorruption);
    return Error::Internal(StrCat(vitals_.label(), " is not healthy: ", kCorruption));
  }
  result.block.reset(reinterpret_cast<BlockHeader*>(region_.At(at)));
  result.payload = {region_.At(at + sizeof(BlockHeader)), static_cast<size_t>(size)};
  return result;
}

Result<WorkResult> WorkLine::Run(Work work, const BlockPool::Block& block, uint64_t size,
                                 Clock::time_point deadline) {
  // Polling pays if models are quick; the more often it failed, the less often it is tried.
  const bool looks = misses_ == 0 || ++skipped_looks_ >= misses_;
  if (looks) skipped_looks_ = 0;
  const Clock::time_point start = Clock::now();
  Begin(work, block, size);
  Result<WorkResult> result = boxes_.Await(begun_, looks ? SpinTime() : nanoseconds(0), deadline);
  if (looks) misses_ = Clock::now() - start <= SpinTime() ? 0 : std::min(misses_ * 2 + 1, 63u);
  return result;
}

void WorkLine::Begin(Work work, const BlockPool::Block& block, uint64_t size) {
  begun_ = boxes_.Put(work, block.exists() ? block.payload_offset() : 0, size);
}

std::optional<WorkResult> WorkLine::Look(nanoseconds patience) {
  if (!boxes_.Look(begun_, patience)) return std::nullopt;
  if (!vitals_.is_alive() || !boxes_.IsFor(begun_)) return std::nullopt;
  if (ring_.HasOpenCalls()) return std::nullopt;
  auto result = boxes_.Await(begun_, {}, Clock::time_point::max());
  if (result.ok()) return std::move(result).value();
  result.TakeError().Ignore();  // Wait returns it again
  return std::nullopt;
}

Result<WorkResult> WorkLine::Wait() { return boxes_.Await(begun_, {}, Clock::time_point::max()); }

Result<std::string> WorkLine::RunText(Work work, std::string_view text,
                                      Clock::time_point deadline) {
  NEREID_KIT_ASSIGN(const BlockPool::Block block, blocks_.Allocate(text.size()));
  std::memcpy(block.payload(), text.data(), text.size());
  block.Share();
  NEREID_KIT_ASSIGN(const WorkResult result, Run(work, block, text.size(), deadline));
  if (result.payload.size() > kMaxText) {
    return Error::Internal(StrCat("a worker's text is longer than ", kMaxText, " bytes"));
  }
  std::string payload(result.payload.begin(), result.payload.end());
  if (result.outcome != Outcome::kOk) return Error::Internal(payload);
  return payload;
}

Result<std::string> QuestionLine::Ask(Work question, Clock::time_point deadline, uint64_t number) {
  const backend::MutexLock lock(mutex_);
  Mailboxes::Ticket ticket = std::exchange(open_, {});
  if (ticket.number != 0 && boxes_.HasNews(ticket)) {
    // Drops an earlier reply that arrived when no thread waited any more.
    auto old = boxes_.Await(ticket, nanoseconds(0), deadline);
    if (!old.ok()) old.TakeError().Ignore();
    ticket = {};
  }
  if (ticket.number == 0) ticket = boxes_.Put(question, 0, number);
  auto answered = boxes_.Await(ticket, nanoseconds(0), deadline);
  if (!answered.ok()) {
    open_ = ticket;
    return answered.TakeError();
  }
  const WorkResult& result = answered.value();
  const std::span<const char> text =
      result.payload.first(std::min<size_t>(result.payload.size(), kMaxMessage));
  std::string payload(text.begin(), text.end());
  if (result.outcome != Outcome::kOk) return Error::Internal(payload);
  return payload;
}

}  // namespace nereid::python
