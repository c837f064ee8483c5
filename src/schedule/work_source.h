// SPDX-License-Identifier: Apache-2.0
// Decides what runs next: the rule of one kind of scheduling, called by an InstancePool under its
// lock. Pure logic on clock readings; no threads, no waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/request.h"
#include "core/statistics.h"

namespace nereid::schedule {

// A decision about what to run now.
struct BatchDecision {
  size_t request_count = 0;                  // run so many; 0: nothing yet
  std::optional<uint64_t> look_again_at_ns;  // with 0 only: when the decision changes by itself
  core::BatchClosed reason = core::BatchClosed::kEager;
};

// Confined to the lock of its pool.
class WorkSource {
 public:
  virtual ~WorkSource() = default;

  // Returns whether requests wait that are not being executed.
  virtual bool HasWaiting() const = 0;
  // Returns what the idle `instance` (its number in the pool) should run. Changes nothing.
  virtual BatchDecision Decide(size_t instance, uint64_t now_ns) = 0;
  // Moves the requests of the last decision, whose count is above 0, to the end of `batch`.
  virtual void Take(size_t instance, const BatchDecision& decision,
                    std::vector<core::RequestPtr>& batch) = 0;
  // Called when the last batch of `instance` has been executed.
  virtual void OnExecuted(size_t /*instance*/) {}
  // Adds an instance of the pool. Numbers are low, and reused.
  virtual void AddInstance(size_t /*instance*/, uint64_t /*now_ns*/) {}
  // Lets nothing more be bound to `instance`, which is destroyed once it is released.
  virtual void RetireInstance(size_t /*instance*/) {}
  // Whether nothing is bound to `instance`, which is being retired.
  virtual bool IsReleased(size_t /*instance*/) const { return true; }
  // Whether decisions differ between idle instances.
  virtual bool is_instance_bound() const { return false; }
};

}  // namespace nereid::schedule
