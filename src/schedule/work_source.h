// SPDX-License-Identifier: Apache-2.0
// What may run next: the rule of one kind of scheduling, asked by an InstancePool under its lock.
// Pure logic on clock readings; no threads, no waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/request.h"
#include "core/statistics.h"

namespace nereid::schedule {

// What to run now.
struct BatchDecision {
  size_t request_count = 0;                  // run these many; 0: nothing yet
  std::optional<uint64_t> look_again_at_ns;  // with 0 only: when the answer changes by itself
  core::BatchClosed reason = core::BatchClosed::kEager;
};

// Confined to the lock of its pool.
class WorkSource {
 public:
  virtual ~WorkSource() = default;

  // Whether requests wait that nobody executes.
  virtual bool HasWaiting() const = 0;
  // What the idle `instance` (its position in the pool) should run. Changes nothing.
  virtual BatchDecision Decide(size_t instance, uint64_t now_ns) = 0;
  // Moves the requests of a decision that was just made, with a count above 0, to the end of
  // `batch`.
  virtual void Take(size_t instance, const BatchDecision& decision,
                    std::vector<core::RequestPtr>& batch) = 0;
  // What `instance` took last has been executed.
  virtual void OnExecuted(size_t /*instance*/) {}
  // The pool has an instance of this number from now on. Numbers are low ones, and given again.
  virtual void AddInstance(size_t /*instance*/, uint64_t /*now_ns*/) {}
  // Nothing is to be bound to `instance` any more: it goes once it is released.
  virtual void RetireInstance(size_t /*instance*/) {}
  // Whether nothing is bound to `instance`, which is to be retired.
  virtual bool IsReleased(size_t /*instance*/) const { return true; }
  // Whether decisions differ between idle instances.
  virtual bool is_instance_bound() const { return false; }
};

}  // namespace nereid::schedule
