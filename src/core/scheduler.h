// SPDX-License-Identifier: Apache-2.0
// The two sides of scheduling: Scheduler takes requests, Instance runs batches.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/clock.h"
#include "core/request.h"

namespace nereid::core {

// Thread-safe.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Takes a normalised request and sees to it that it is answered, also when it fails or is
  // refused.
  virtual void Enqueue(RequestPtr request) = 0;
  // Removes a cancelled request from the queue if it is still there and answers it. The request may
  // be gone already; `request` is only compared.
  virtual void OnCancelled(Request& request) = 0;
  // A backend gives `request` back to be executed once more (an iterative sequence). False, and the
  // request untouched, where the model's configuration does not provide for that.
  virtual bool Reschedule(RequestPtr& /*request*/) { return false; }
  // Refuses to start sequences from now on; those in progress may go on.
  virtual void RefuseStarts() {}
  // Waits until no sequence is in progress. False: `deadline` has passed and some are. After
  // RefuseStarts.
  virtual bool WaitForSequences(base::TimePoint /*deadline*/) { return true; }
  // Sequences in progress.
  virtual size_t SequenceCount() { return 0; }
  // Requests from now on are refused; returns when everything accepted has been answered or
  // `deadline` has passed. False: the deadline passed.
  virtual bool Stop(base::TimePoint deadline) = 0;
};

// A model's own say in which requests share a batch. Called under its scheduler's lock, one call at
// a time.
class BatchStrategy {
 public:
  virtual ~BatchStrategy() = default;
  // A batch is being looked for anew, from the front of the queue; an earlier one is given up.
  virtual void Begin() = 0;
  // Whether `request` joins the batch after those for which this returned true.
  virtual bool Includes(Request& request) = 0;
};

// One execution resource of a model. Execute is never called twice at once.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual const std::string& name() const = 0;
  // Runs `batch`, taking each request; every one is answered and released by the instance.
  virtual void Execute(std::span<RequestPtr> batch) = 0;
  // Whether any thread may call Execute and it never waits for anything but the CPU.
  virtual bool runs_on_any_thread() const = 0;
  // Whether any thread may call Begin.
  virtual bool begins_on_any_thread() const { return false; }
  // As Execute, waiting no longer than about `patience`; false when End is to be called, on the
  // instance's own thread and before anything else is executed.
  virtual bool Begin(std::span<RequestPtr> batch, std::chrono::nanoseconds /*patience*/) {
    Execute(batch);
    return true;
  }
  virtual void End() {}
  // Called first on the thread that will call Execute, where the instance needs its own thread.
  virtual base::Status InitializeOnThread() { return base::OkStatus(); }
  virtual void FinalizeOnThread() {}
};

}  // namespace nereid::core
