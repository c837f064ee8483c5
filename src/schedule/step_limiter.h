// SPDX-License-Identifier: Apache-2.0
// The limit of an ensemble's `max_inflight_requests` for one of its steps.
#pragma once

#include <cstdint>

#include "base/inbox.h"
#include "base/mutex.h"

namespace nereid::schedule {

// At most so many requests of one step are in flight, counted over all requests of the ensemble;
// the others wait in order. Thread-safe.
class StepLimiter {
 public:
  // Something that needs a place. It must not go while it waits or has been promised one.
  class Waiter : public base::Queueable {
   public:
    virtual ~Waiter() = default;
    // The place that Acquire did not have. On the thread that gave it back, without a lock.
    virtual void OnPlace() = 0;

   private:
    friend class StepLimiter;

    // Guarded by the limiter.
    bool is_waiting_ = false;
    Waiter* before_ = nullptr;
    Waiter* behind_ = nullptr;
  };

  explicit StepLimiter(uint32_t limit) : limit_(limit) {}

  // False: `waiter` waits, and its OnPlace is called, perhaps before this returns.
  bool Acquire(Waiter& waiter);
  // Gives a place back: to the one who has waited longest, if there is any. Places that are given
  // back within an OnPlace are passed on after it, so that the stack does not grow with a chain.
  void Release();
  // Takes `waiter` out of the line. False when it is not there any more: OnPlace has been called,
  // or will be.
  bool Remove(Waiter& waiter);

 private:
  // The one who gets the place that is given back, if anybody waits.
  Waiter* Next();

  const uint32_t limit_;
  base::Mutex mutex_;
  uint32_t in_flight_ NEREID_GUARDED_BY(mutex_) = 0;
  Waiter* head_ NEREID_GUARDED_BY(mutex_) = nullptr;
  Waiter* tail_ NEREID_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace nereid::schedule
