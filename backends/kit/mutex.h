// SPDX-License-Identifier: Apache-2.0
// The only lock of plug-ins and of the Python extension: std::mutex with clang's thread-safety
// annotations. A field marked NEREID_KIT_GUARDED_BY cannot be accessed without its lock, and a
// function marked NEREID_KIT_REQUIRES cannot be called without it. clang -Wthread-safety checks
// both; other compilers ignore the annotations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define NEREID_KIT_ANNOTATION(x) __attribute__((x))
#else
#define NEREID_KIT_ANNOTATION(x)
#endif

#define NEREID_KIT_CAPABILITY(x) NEREID_KIT_ANNOTATION(capability(x))
#define NEREID_KIT_SCOPED_CAPABILITY NEREID_KIT_ANNOTATION(scoped_lockable)
#define NEREID_KIT_GUARDED_BY(x) NEREID_KIT_ANNOTATION(guarded_by(x))
#define NEREID_KIT_REQUIRES(...) NEREID_KIT_ANNOTATION(requires_capability(__VA_ARGS__))
#define NEREID_KIT_ACQUIRE(...) NEREID_KIT_ANNOTATION(acquire_capability(__VA_ARGS__))
#define NEREID_KIT_RELEASE(...) NEREID_KIT_ANNOTATION(release_capability(__VA_ARGS__))

namespace nereid::backend {

// A std::mutex with thread-safety annotations.
class NEREID_KIT_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() NEREID_KIT_ACQUIRE() { mutex_.lock(); }
  void Unlock() NEREID_KIT_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class NEREID_KIT_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NEREID_KIT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() NEREID_KIT_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Spurious wake-ups happen; wait in a loop over the condition.
class CondVar {
 public:
  using Clock = std::chrono::steady_clock;

  void Wait(Mutex& mutex) NEREID_KIT_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false if `deadline` passed before a wake-up.
  bool WaitUntil(Mutex& mutex, Clock::time_point deadline) NEREID_KIT_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool is_woken = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return is_woken;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace nereid::backend
