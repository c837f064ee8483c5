// SPDX-License-Identifier: Apache-2.0
#include "schedule/step_limiter.h"

namespace nereid::schedule {
namespace {

// Calls OnPlace of the waiters that got a place on this thread, one after another: each may release
// its own place, which is passed on.
class PlacesGiven {
 public:
  static void Give(StepLimiter::Waiter& waiter) {
    static thread_local PlacesGiven mine;
    mine.given_.Append(waiter);
    if (mine.is_active_) return;
    mine.is_active_ = true;
    while (StepLimiter::Waiter* const next = mine.given_.Pop()) next->OnPlace();
    mine.is_active_ = false;
  }

 private:
  base::Queue<StepLimiter::Waiter> given_;
  bool is_active_ = false;
};

}  // namespace

bool StepLimiter::Acquire(Waiter& waiter) {
  base::MutexLock lock(mutex_);
  if (in_flight_ < limit_) {
    ++in_flight_;
    return true;
  }
  waiter.is_waiting_ = true;
  waiter.before_ = tail_;
  waiter.behind_ = nullptr;
  (tail_ != nullptr ? tail_->behind_ : head_) = &waiter;
  tail_ = &waiter;
  return false;
}

void StepLimiter::Release() {
  if (Waiter* const next = Next()) PlacesGiven::Give(*next);
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
