// SPDX-License-Identifier: Apache-2.0
// Requests by the numbers under which another process knows them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"

namespace nereid::backend {

// Objects that another process names by numbers, which are never used again. T has Fail(const
// Error&). Thread-safe.
template <typename T>
class NumberedTable {
 public:
  uint64_t Add(std::shared_ptr<T> object) {
    const uint64_t number = NewNumber();
    Add(number, std::move(object));
    return number;
  }
  // Returns a number for an object that is added later.
  uint64_t NewNumber() {
    const MutexLock lock(mutex_);
    return ++last_;
  }
  // `number` is a new one. From now on, another thread may fail the object.
  void Add(uint64_t number, std::shared_ptr<T> object) {
    const MutexLock lock(mutex_);
    count_.fetch_add(1);
    table_.emplace(number, std::move(object));
  }
  // Returns null if there is none, as after Remove.
  std::shared_ptr<T> Find(uint64_t number) {
    const MutexLock lock(mutex_);
    const auto found = table_.find(number);
    return found == table_.end() ? nullptr : found->second;
  }
  void Remove(uint64_t number) {
    const MutexLock lock(mutex_);
    count_.fetch_sub(table_.erase(number));
  }
  // The objects and their numbers, at this moment.
  std::vector<std::pair<uint64_t, std::shared_ptr<T>>> List() {
    const MutexLock lock(mutex_);
    return {table_.begin(), table_.end()};
  }
  bool is_empty() const { return count_.load() == 0; }
  // Fails all objects, without the lock, and forgets them.
  void FailAll(const Error& error) {
    std::unordered_map<uint64_t, std::shared_ptr<T>> all;
    {
      const MutexLock lock(mutex_);
      all.swap(table_);
      count_.store(0);
    }
    for (const auto& [number, object] : all) object->Fail(error);
  }

 private:
  std::atomic<uint64_t> count_{0};
  Mutex mutex_;
  uint64_t last_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<T>> table_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::backend
