// SPDX-License-Identifier: Apache-2.0
// Having things done by a worker: a mailbox to it and one back. One pair is for work, one thing at
// a time; the other is for questions that are answered beside the work.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend_kit/mutex.h"
#include "python_backend/call_ring.h"
#include "python_backend/region.h"
#include "python_backend/vitals.h"

namespace nereid::python {

// Calls Release.
struct ReleaseBlock {
  void operator()(BlockHeader* block) const { Release(block); }
};

// How a piece of work ended, and what came of it, which the worker keeps until this is gone.
struct WorkResult {
  Outcome outcome = Outcome::kOk;
  std::span<const char> payload;
  std::unique_ptr<BlockHeader, ReleaseBlock> block;  // null for an empty result
};

// A mailbox to the worker and one from it. Thread-compatible.
class Mailboxes {
 public:
  using Clock = std::chrono::steady_clock;

  // All outlive this.
  Mailboxes(const Region& region, Vitals& vitals, Mailbox& to, Mailbox& from)
      : region_(region), vitals_(vitals), to_(to), from_(from) {}

  // What was put into a mailbox, and what had come back before.
  struct Ticket {
    uint32_t number = 0;  // 0 for none
    uint32_t seen = 0;
  };
  // Has something done; `offset` is that of its payload, 0 for none.
  Ticket Put(Work work, uint64_t offset, uint64_t size);
  // Whether something came back since.
  bool HasNews(Ticket ticket) const { return Look(ticket, {}); }
  // The same, looked for during `patience` at most.
  bool Look(Ticket ticket, std::chrono::nanoseconds patience) const;
  // Whether the last that came back belongs to the ticket.
  bool IsFor(Ticket ticket) const { return from_.ticket == ticket.number; }
  // Waits for the result, looking during `spin` before it sleeps. Results of what was put before
  // and nobody waited for are passed over.
  backend::Result<WorkResult> Await(Ticket ticket, std::chrono::nanoseconds spin,
                                    Clock::time_point deadline);

 private:
  backend::Result<WorkResult> Read();

  const Region& region_;
  Vitals& vitals_;
  Mailbox& to_;
  Mailbox& from_;
};

// The work of a worker. Confined to one thread at a time.
class WorkLine {
 public:
  using Clock = std::chrono::steady_clock;

  // All outlive this. `blocks` are for texts, and `ring` has the calls that the worker makes
  // meanwhile.
  WorkLine(const Region& region, Vitals& vitals, BlockPool& blocks, const CallRing& ring)
      : blocks_(blocks),
        ring_(ring),
        vitals_(vitals),
        boxes_(region, vitals, region.control().work, region.control().done) {}

  // Has a piece of work done; `block`, which may be empty, has what belongs to it.
  backend::Result<WorkResult> Run(Work work, const BlockPool::Block& block, uint64_t size,
                                  Clock::time_point deadline = Clock::time_point::max());
  // The same in parts: has it begun, looks for the result for `patience` at most (nothing if there
  // is none then, or not all that the worker called for before it is handled), and waits for it.
  // Look is for once, and Wait comes last.
  void Begin(Work work, const BlockPool::Block& block, uint64_t size);
  std::optional<WorkResult> Look(std::chrono::nanoseconds patience);
  backend::Result<WorkResult> Wait();
  // Run with text both ways.
  backend::Result<std::string> RunText(Work work, std::string_view text,
                                       Clock::time_point deadline = Clock::time_point::max());

 private:
  BlockPool& blocks_;
  const CallRing& ring_;
  Vitals& vitals_;
  Mailboxes boxes_;
  Mailboxes::Ticket begun_;     // of the last Run or Begin
  uint32_t misses_ = 0;         // of looking for a result instead of sleeping
  uint32_t skipped_looks_ = 0;  // since the last one
};

// Questions to a worker, which it answers beside its work. Thread-safe.
class QuestionLine {
 public:
  using Clock = std::chrono::steady_clock;

  // Both outlive this.
  QuestionLine(const Region& region, Vitals& vitals)
      : boxes_(region, vitals, region.control().question, region.control().reply) {}

  // The worker's text. One question at a time, whatever the number of threads that ask: where an
  // earlier one is not answered yet, its answer serves.
  backend::Result<std::string> Ask(Work question, Clock::time_point deadline);

 private:
  backend::Mutex mutex_;
  Mailboxes boxes_ NEREID_KIT_GUARDED_BY(mutex_);
  // A question that nobody waited for long enough.
  Mailboxes::Ticket open_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
