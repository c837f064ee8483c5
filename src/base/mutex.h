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
  void Unlock() NEREID_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class NEREID_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NEREID_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
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
