// SPDX-License-Identifier: Apache-2.0
// The limit of an ensemble's `max_inflight_requests` for one of its steps.
#pragma once

#include <cstdint>

#include "base/inbox.h"
#include "base/mutex.h"
#include "base/timers.h"

namespace nereid::schedule {

// Limits how many requests of one step are in flight, over all requests of the ensemble; the others
// wait in order. Thread-safe.
class StepLimiter {
 public:
  // An object that needs a place. It must not be destroyed while it waits or has been promised one.
  class Waiter : public base::Queueable {
   public:
    virtual ~Waiter() = default;
    // Delivers the place that Acquire did not have. Called without a lock, on the thread that
    // released the place or, if that waits for something, on that of the timers.
    virtual void OnPlace() = 0;

   private:
    friend class StepLimiter;

    StepLimiter* limiter_ = nullptr;  // set by Acquire
    // Guarded by the limiter.
    bool is_waiting_ = false;
    Waiter* before_ = nullptr;
    Waiter* behind_ = nullptr;
  };

  // `timers` outlives this.
  StepLimiter(uint32_t limit, base::Timers& timers)
      : limit_(limit), timer_(timers, [this] { DeliverLeft(); }) {}

  // Returns false if `waiter` has to wait; its OnPlace is then called, perhaps before this returns.
  bool Acquire(Waiter& waiter);
  // Releases a place, and passes it to the longest waiter, if any. Places that are released within
  // an OnPlace are passed on after it, so that the stack does not grow with a chain.
  void Release();
  // The calling thread may wait from here on: the timers' thread delivers what this one has still
  // to deliver, of any limiter.
  static void HandOver();
  // Removes `waiter` from the line. Returns false if it is not there any more: OnPlace has been
  // called, or will be.
  bool Remove(Waiter& waiter);

 private:
  // The places that one thread has to deliver.
  class PlacesGiven;

  // Returns the waiter for a released place, if any.
  Waiter* Next();
  void LeaveToTimers(Waiter& waiter);
  void DeliverLeft();

  const uint32_t limit_;
  base::Mutex mutex_;
  uint32_t in_flight_ NEREID_GUARDED_BY(mutex_) = 0;
  Waiter* head_ NEREID_GUARDED_BY(mutex_) = nullptr;
  Waiter* tail_ NEREID_GUARDED_BY(mutex_) = nullptr;
  base::Queue<Waiter> left_ NEREID_GUARDED_BY(mutex_);  // to the timers' thread
  base::Timer timer_;
};

}  // namespace nereid::schedule
