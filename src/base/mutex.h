// SPDX-License-Identifier: Apache-2.0
// The only lock of the code base: std::mutex with clang's thread-safety annotations, so that a
// field marked NEREID_GUARDED_BY cannot be accessed without its lock (checked by clang
// -Wthread-safety).
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/platform.h"

namespace nereid::base {

// A std::mutex with thread-safety annotations.
class NEREID_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() NEREID_ACQUIRE() { mutex_.lock(); }
  bool TryLock() NEREID_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // Like Lock, but does not sleep at first: for a lock that nobody holds for longer than it takes
  // to wake a thread.
  void LockSoon() NEREID_ACQUIRE() {
    for (int i = 0; i < kLooks; ++i) {
      if (mutex_.try_lock()) return;
      Pause();
    }
    mutex_.lock();
  }
  void Unlock() NEREID_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  // A few microseconds, or a tenth of that where a processor pauses only briefly.
  static constexpr int kLooks = 64;
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class NEREID_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NEREID_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  // For a mutex that the calling thread has locked already.
  MutexLock(Mutex& mutex, std::adopt_lock_t) NEREID_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() NEREID_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Spurious wake-ups happen; wait in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) NEREID_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false if `deadline` passed before a wake-up.
  bool WaitUntil(Mutex& mutex, TimePoint deadline) NEREID_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace nereid::base
