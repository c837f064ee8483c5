// SPDX-License-Identifier: Apache-2.0
// Decides which thread executes the requests that a reactor has received: the rules of
// docs/adr/0002. Pure logic on its callers' readings: how long executions took, how much of that
// time their thread had the processor, and what else has arrived. No threads, no waiting, no locks;
// only Stopwatch reads a clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/thread_use.h"

namespace nereid::schedule {

// The part of an execution that a reactor does itself.
enum class InlineChoice {
  kRun,            // all of it
  kBegin,          // it begins a single request, and waits briefly for the end
  kLeaveToThread,  // nothing
};

// What reactors may do with an instance in general.
struct InlineTraits {
  bool runs = false;    // any thread may execute it
  bool begins = false;  // any thread may begin an execution; its own thread ends it
};

// How fast one instance has been so far. Thread-compatible.
class InlineRecord {
 public:
  // `budget`: how long one request may occupy a reactor; 0: not at all. `brief`: see is_brief.
  InlineRecord(std::chrono::nanoseconds budget, std::chrono::nanoseconds brief,
               InlineTraits traits);

  // Whether an execution is short enough for the reactor to run it to its end.
  bool may_run() const { return traits_.runs && IsQuick(budget_ns_); }
  // Whether an execution is short enough for the reactor to begin it and wait for its end. Not for
  // an instance that runs on any thread, which may have no thread to end what was begun.
  bool may_begin() const {
    return traits_.begins && !traits_.runs && IsQuick(budget_ns_ * kBudgetsToWait);
  }
  // Whether an execution takes less time than leaving a request to another thread, and its response
  // back. Reactors then wait for each other.
  bool is_brief() const { return may_run() && own_average_ns_ > 0 && own_average_ns_ <= brief_ns_; }
  // Whether the next execution has to be timed exactly, because it matters and is in doubt how much
  // of the elapsed time is the execution's own.
  bool is_watched() const {
    return (watched_runs_ > 0 || average_ns_ > budget_ns_) && budget_ns_ > 0 &&
           (traits_.runs || traits_.begins);
  }
  // Records an execution of `request_count` requests that occupied its thread for `duration_ns`.
  void Account(uint64_t duration_ns, size_t request_count);
  // Records that one took `duration_ns` in which a reactor executed its own request: those of other
  // reactors take longer, because their responses are handed back.
  void AccountOwn(uint64_t duration_ns);

 private:
  friend class InlinePolicy;

  // The number of executions that are timed on the instance's own thread before a reactor may do
  // one.
  static constexpr uint64_t kMeasuredRuns = 32;
  // A reactor waits this many budgets for an execution that it has begun: waiting only has to be
  // faster than a thread switch.
  static constexpr int kBudgetsToWait = 2;

  bool IsQuick(uint64_t limit_ns) const {
    return execution_count_ >= kMeasuredRuns && average_ns_ <= limit_ns && limit_ns > 0;
  }

  uint64_t budget_ns_;
  uint64_t brief_ns_;
  InlineTraits traits_;
  uint64_t execution_count_ = 0;
  uint64_t average_ns_ = 0;      // exponentially weighted
  uint64_t own_average_ns_ = 0;  // the same; 0: unknown
  uint64_t watched_runs_;        // how many of the next executions are timed exactly
};

// The rules for reactors and the instances of one model. Immutable.
class InlinePolicy {
 public:
  // `cpu_count`: the number of processors of the server. `arrival_patience`: how long a reactor
  // waits for another one.
  InlinePolicy(std::chrono::nanoseconds budget, size_t cpu_count,
               std::chrono::nanoseconds arrival_patience)
      : budget_(budget), arrival_patience_(arrival_patience), can_wait_(cpu_count > 1) {}

  InlineRecord NewRecord(InlineTraits traits) const {
    return {budget_, arrival_patience_ / kBriefInPatience, traits};
  }

  // Returns what a reactor may do with an execution of an idle instance.
  InlineChoice Choose(const InlineRecord& idle) const {
    if (idle.may_run()) return InlineChoice::kRun;
    return can_wait_ && idle.may_begin() ? InlineChoice::kBegin : InlineChoice::kLeaveToThread;
  }
  // Returns the same for a reactor that has `left_ns` left of its time in this round.
  InlineChoice ChooseInRound(const InlineRecord& idle, int64_t left_ns) const {
    const InlineChoice choice = Choose(idle);
    return choice == InlineChoice::kRun && left_ns < 0 ? InlineChoice::kLeaveToThread : choice;
  }
  // Whether a reactor may wait for one that executes an instance.
  bool may_wait_for(const InlineRecord& busy) const { return can_wait_ && busy.is_brief(); }
  std::chrono::nanoseconds arrival_patience() const { return arrival_patience_; }
  // How long a reactor waits for the end of an execution that it has begun.
  std::chrono::nanoseconds patience() const { return budget_ * InlineRecord::kBudgetsToWait; }
  // How long a reactor runs executions before it handles its sockets again.
  int64_t round_ns() const { return (budget_ * kBudgetsPerRound).count(); }
  // The number of fast requests without batching that might have arrived at once.
  static constexpr int kBudgetsPerRound = 8;

 private:
  // An execution is brief if a reactor that waits would wait for so many.
  static constexpr int kBriefInPatience = 50;

  const std::chrono::nanoseconds budget_;
  const std::chrono::nanoseconds arrival_patience_;
  const bool can_wait_;  // false with one processor, where waiting would delay the execution
};

// Whether the requests of a model arrive one at a time, so that a reactor may wait for the
// execution of one: while it waits, it does not read the others. Thread-compatible.
class ArrivalHistory {
 public:
  // Records the arrival of a request that its reactor does not run. `is_alone`: an instance is
  // idle, and the reactor has read everything that was there. Returns whether the reactor may wait
  // for it.
  bool Note(bool is_alone);

 private:
  uint32_t until_alone_ = 0;  // so many requests have to arrive alone before a reactor may wait
};

// Returns how long an execution occupied its thread, when `passed_ns` elapsed between two readings
// of the thread's use of the processor: the time in which other threads had the processor does not
// count, unless the execution waited for something.
uint64_t ExecutionNs(uint64_t passed_ns, const base::ThreadUse& before,
                     const base::ThreadUse& after);

// Times one execution. Confined to the thread that executes.
class Stopwatch {
 public:
  // `is_exact`: see ExecutionNs; takes two system calls at each end. Otherwise the elapsed time
  // counts.
  Stopwatch(bool is_exact, uint64_t start_ns)
      : is_exact_(is_exact),
        before_(is_exact ? base::ThreadUse::Now() : base::ThreadUse()),
        start_ns_(start_ns) {}

  uint64_t PassedNs(uint64_t end_ns) const {
    const uint64_t passed_ns = end_ns > start_ns_ ? end_ns - start_ns_ : 0;
    return is_exact_ ? ExecutionNs(passed_ns, before_, base::ThreadUse::Now()) : passed_ns;
  }

 private:
  const bool is_exact_;
  const base::ThreadUse before_;
  const uint64_t start_ns_;
};

}  // namespace nereid::schedule
