// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_limiter.h"

#include <utility>

#include "base/clock.h"
#include "base/no_wait.h"

namespace nereid::schedule {

// Calls OnPlace of the waiters that got a place on this thread, one after another: each may release
// its own place, which is passed on.
class StepLimiter::PlacesGiven {
 public:
  static PlacesGiven& Mine() {
    static thread_local PlacesGiven mine;
    return mine;
  }

  void Give(Waiter& waiter) {
    given_.Append(waiter);
    if (is_active_) return;
    is_active_ = true;
    while (Waiter* const next = given_.Pop()) next->OnPlace();
    is_active_ = false;
  }
  void HandOver() {
    while (Waiter* const next = given_.Pop()) next->limiter_->LeaveToTimers(*next);
  }

 private:
  base::Queue<Waiter> given_;
  bool is_active_ = false;
};

void StepLimiter::HandOver() {
  if (!base::NoWaitScope::IsHere()) PlacesGiven::Mine().HandOver();
}

void StepLimiter::LeaveToTimers(Waiter& waiter) {
  base::MutexLock lock(mutex_);
  left_.Append(waiter);
  timer_.ArmAt(base::NowNs());
}

// A waiter keeps its limiter; the last one may destroy it, together with its timer.
void StepLimiter::DeliverLeft() {
  base::Queue<Waiter> left;
  {
    base::MutexLock lock(mutex_);
    left = std::move(left_);
  }
  while (Waiter* const next = left.Pop()) next->OnPlace();
}

bool StepLimiter::Acquire(Waiter& waiter) {
  base::MutexLock lock(mutex_);
  if (in_flight_ < limit_) {
    ++in_flight_;
    return true;
  }
  waiter.limiter_ = this;
  waiter.is_waiting_ = true;
  waiter.before_ = tail_;
  waiter.behind_ = nullptr;
  (tail_ != nullptr ? tail_->behind_ : head_) = &waiter;
  tail_ = &waiter;
  return false;
}

void StepLimiter::Release() {
  if (Waiter* const next = Next()) PlacesGiven::Mine().Give(*next);
}

StepLimiter::Waiter* StepLimiter::Next() {
  base::MutexLock lock(mutex_);
  Waiter* const next = head_;
  if (next == nullptr) {
    --in_flight_;
    return nullptr;
  }
  head_ = next->behind_;
  (head_ != nullptr ? head_->before_ : tail_) = nullptr;
  next->is_waiting_ = false;
  next->behind_ = nullptr;
  return next;
}

bool StepLimiter::Remove(Waiter& waiter) {
  base::MutexLock lock(mutex_);
  if (!waiter.is_waiting_) return false;
  (waiter.before_ != nullptr ? waiter.before_->behind_ : head_) = waiter.behind_;
  (waiter.behind_ != nullptr ? waiter.behind_->before_ : tail_) = waiter.before_;
  waiter.is_waiting_ = false;
  waiter.before_ = waiter.behind_ = nullptr;
  return true;
}

}  // namespace nereid::schedule
