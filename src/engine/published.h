// SPDX-License-Identifier: Apache-2.0
// A value that many threads read for every request and that seldom changes. Readers cache the
// current value per thread and compare one generation number; only after a change do they take the
// lock. A replaced value lives until every reading thread has read again, so it must not own
// anything whose destruction is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/per_thread.h"

namespace nereid::engine {

// Thread-safe. Each thread caches the value of one object per type T, so several objects of the
// same T in one process evict each other.
template <typename T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> value) : value_(std::move(value)) {}

  void Set(std::shared_ptr<const T> value) {
    base::MutexLock lock(mutex_);
    value_.swap(value);  // the old value is destroyed after the lock is released
    generation_.store(NextGeneration());
  }

  // The reference is valid until the calling thread reads again.
  const T& Read() const {
    Cached& cached = base::PerThread<Cached>::Get();
    const uint64_t generation = generation_.load();
    if (cached.generation != generation) [[unlikely]] {
      base::MutexLock lock(mutex_);
      cached.value = value_;
      cached.generation = generation_.load();
    }
    return *cached.value;
  }

  std::shared_ptr<const T> Share() const {
    base::MutexLock lock(mutex_);
    return value_;
  }

 private:
  // A thread's own reference to the value that it last read.
  struct Cached {
    uint64_t generation = 0;
    std::shared_ptr<const T> value;
  };

  // Returns a number that is unique among all objects, so that a cached value is never attributed
  // to another object.
  static uint64_t NextGeneration() {
    static std::atomic<uint64_t> next{0};
    return next.fetch_add(1) + 1;
  }

  mutable base::Mutex mutex_;
  std::shared_ptr<const T> value_ NEREID_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{NextGeneration()};
};

}  // namespace nereid::engine
