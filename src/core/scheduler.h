// SPDX-License-Identifier: Apache-2.0
// The two sides of scheduling: a Scheduler accepts requests, an Instance executes batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "core/request.h"
#include "core/sequence_reading.h"

namespace nereid::core {

// How busy a scheduler is at a moment.
struct SchedulerLoad {
  uint64_t oldest_waiting_ns = 0;  // since when the oldest request waits; 0: none waits
  size_t instance_count = 0;
};

// Schedules the requests of one model. Thread-safe.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Takes a normalised request and ensures that it gets a response, also when it fails or is
  // refused.
  virtual void Enqueue(RequestPtr request) = 0;
  // Removes a cancelled request from the queue, if it is still there, and completes it. `request`
  // may be destroyed already; it is only compared.
  virtual void OnCancelled(Request& request) = 0;
  // Takes back `request` from a backend to execute it once more (an iterative sequence). Returns
  // false and leaves the request untouched if the model's configuration does not permit that.
  virtual bool Reschedule(RequestPtr& /*request*/) { return false; }
  // Refuses new sequences from now on; those in progress continue.
  virtual void RefuseStarts() {}
  // Waits until no sequence is in progress; returns false if `deadline` passes first. REQUIRES:
  // RefuseStarts was called.
  virtual bool WaitForSequences(base::TimePoint /*deadline*/) { return true; }
  // The number of sequences in progress.
  virtual size_t SequenceCount() { return 0; }
  // Whether a request with this id would join a sequence in progress.
  virtual bool HasSequence(const CorrelationId& /*id*/) { return false; }
  virtual SchedulerLoad ReadLoad() { return {}; }
  // Returns the sequences, of each kind at most `most`. Nothing for a scheduler without sequences.
  virtual std::optional<SequencesReading> ReadSequences(size_t /*most*/) { return std::nullopt; }
  // Refuses further requests and waits until all accepted ones are complete; returns false if
  // `deadline` passes first.
  virtual bool Stop(base::TimePoint deadline) = 0;
};

// A model's own rules for which requests share a batch. Called under its scheduler's lock, one call
// at a time.
class BatchStrategy {
 public:
  virtual ~BatchStrategy() = default;
  // Starts a new batch from the front of the queue; a previous unfinished one is abandoned.
  virtual void Begin() = 0;
  // Whether `request` joins the batch after those for which this returned true.
  virtual bool Includes(Request& request) = 0;
};

// One execution resource of a model. Execute is never called concurrently.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual const std::string& name() const = 0;
  // Executes `batch` and takes each request; the instance completes and releases every one.
  virtual void Execute(std::span<RequestPtr> batch) = 0;
  // Whether any thread may call Execute and it never waits for anything except the CPU.
  virtual bool runs_on_any_thread() const = 0;
  // Whether any thread may call Begin.
  virtual bool begins_on_any_thread() const { return false; }
  // Like Execute, but waits no longer than about `patience`. If it returns false, End must be
  // called on the instance's own thread before anything else is executed.
  virtual bool Begin(std::span<RequestPtr> batch, std::chrono::nanoseconds /*patience*/) {
    Execute(batch);
    return true;
  }
  virtual void End() {}
  // Called first on the thread that will call Execute, if the instance needs its own thread.
  virtual base::Status InitializeOnThread() { return base::OkStatus(); }
  virtual void FinalizeOnThread() {}
};

}  // namespace nereid::core
