// SPDX-License-Identifier: Apache-2.0
// Work for a worker: one mailbox to the worker and one back. One pair is for work, one item at a
// time; the other is for questions, which the worker replies to while it works.
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

// The deleter that calls Release.
struct ReleaseBlock {
  void operator()(BlockHeader* block) const { Release(block); }
};

// The outcome and the result of some work. The worker keeps the result until this object is gone.
struct WorkResult {
  Outcome outcome = Outcome::kOk;
  std::span<const char> payload;
  std::unique_ptr<BlockHeader, ReleaseBlock> block;  // null for an empty result
};

// A mailbox to the worker and one from it. Thread-compatible.
class Mailboxes {
 public:
  using Clock = std::chrono::steady_clock;

  // All arguments outlive the mailboxes.
  Mailboxes(const Region& region, Vitals& vitals, Mailbox& to, Mailbox& from)
      : region_(region), vitals_(vitals), to_(to), from_(from) {}

  // Identifies what was put into a mailbox, and what had come back before.
  struct Ticket {
    uint32_t number = 0;  // 0: none
    uint32_t seen = 0;
  };
  // Gives the worker some work; `offset` is that of its payload, 0 if it has none.
  Ticket Put(Work work, uint64_t offset, uint64_t size);
  // Returns whether anything has come back since.
  bool HasNews(Ticket ticket) const { return Look(ticket, {}); }
  // Like HasNews, but polls for `patience` at most.
  bool Look(Ticket ticket, std::chrono::nanoseconds patience) const;
  // Returns whether the last thing that came back belongs to the ticket.
  bool IsFor(Ticket ticket) const { return from_.ticket == ticket.number; }
  // Waits for the result, polling for `spin` before it sleeps. Skips results of earlier work that
  // no thread waited for.
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

  // All arguments outlive this object. `blocks` provides memory for texts, and `ring` has the calls
  // that the worker makes meanwhile.
  WorkLine(const Region& region, Vitals& vitals, BlockPool& blocks, const CallRing& ring)
      : blocks_(blocks),
        ring_(ring),
        vitals_(vitals),
        boxes_(region, vitals, region.control().work, region.control().done) {}

  // Executes some work; `block`, which may be empty, has its payload.
  backend::Result<WorkResult> Run(Work work, const BlockPool::Block& block, uint64_t size,
                                  Clock::time_point deadline = Clock::time_point::max());
  // The same in parts: Begin starts the work; Look polls for the result for `patience` at most, and
  // returns nothing if there is none or if calls of the worker are still to be handled; Wait waits
  // for it. Look may be called once, and Wait comes last.
  void Begin(Work work, const BlockPool::Block& block, uint64_t size);
  std::optional<WorkResult> Look(std::chrono::nanoseconds patience);
  backend::Result<WorkResult> Wait();
  // Run with a text as payload and as result.
  backend::Result<std::string> RunText(Work work, std::string_view text,
                                       Clock::time_point deadline = Clock::time_point::max());

 private:
  BlockPool& blocks_;
  const CallRing& ring_;
  Vitals& vitals_;
  Mailboxes boxes_;
  Mailboxes::Ticket begun_;     // the ticket of the last Run or Begin
  uint32_t misses_ = 0;         // how often polling failed
  uint32_t skipped_looks_ = 0;  // since the last polling
};

// Questions to a worker, which it replies to while it works. Thread-safe.
class QuestionLine {
 public:
  using Clock = std::chrono::steady_clock;

  // Both arguments outlive this object.
  QuestionLine(const Region& region, Vitals& vitals)
      : boxes_(region, vitals, region.control().question, region.control().reply) {}

  // Returns the worker's reply. There is one question at a time, for any number of threads: if an
  // earlier one has no reply yet, its reply serves for all.
  // `number` goes with the question.
  backend::Result<std::string> Ask(Work question, Clock::time_point deadline, uint64_t number = 0);

 private:
  backend::Mutex mutex_;
  Mailboxes boxes_ NEREID_KIT_GUARDED_BY(mutex_);
  // The question whose reply no thread waited for long enough.
  Mailboxes::Ticket open_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
