// SPDX-License-Identifier: Apache-2.0
// What a sleeping thread is woken with, also after the lock of its state is free and the thread
// itself may be gone.
#pragma once

#include <utility>

#include "base/mutex.h"

namespace nereid::schedule {

// A condition variable out of a store of the process that grows to as many as were ever used at a
// time, and is never freed. A notification that comes too late therefore reaches nobody, or makes
// the next owner of the condition variable look at its state once in vain; a count of references
// for each wake-up is not needed. Thread-safe.
class WakeSignal {
 public:
  WakeSignal();
  // REQUIRES: nobody waits.
  ~WakeSignal();
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  base::CondVar& operator*() const { return condition_; }
  base::CondVar* operator->() const { return &condition_; }

 private:
  base::CondVar& condition_;
};

// A thread that was woken under the lock, and is only told so once the lock is free: told earlier,
// it might take the place of the thread that has the lock, only to wait for it. Outlives the thread
// if need be. Confined to a thread.
class PendingWake {
 public:
  PendingWake() = default;
  PendingWake(const PendingWake&) = delete;
  PendingWake& operator=(const PendingWake&) = delete;
  ~PendingWake() { Send(); }

  bool is_set() const { return condition_ != nullptr; }
  // REQUIRES: not is_set().
  void Set(const WakeSignal& signal) { condition_ = &*signal; }
  // Called without the lock, by the destructor at the latest. Does nothing if nothing is set.
  void Send() {
    if (base::CondVar* const condition = std::exchange(condition_, nullptr)) condition->NotifyOne();
  }

 private:
  base::CondVar* condition_ = nullptr;
};

}  // namespace nereid::schedule
