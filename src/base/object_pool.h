// SPDX-License-Identifier: Apache-2.0
// Recycles objects of one type without touching the allocator in steady state. Each thread keeps a
// few; surplus moves through a shared depot in batches, so that objects taken on one thread and given
// back on another cost a lock only once per batch. T needs `void Recycle()`, which drops what it holds
// and leaves it ready for reuse. Thread-safe.
//
// Under AddressSanitizer nothing is kept, so that whoever uses an object after giving it back is found.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/per_thread.h"
#include "base/platform.h"

namespace nereid::base {

template <typename T>
class ObjectPool {
 public:
  static T* Take() {
    if constexpr (kHasAddressSanitizer) return new T;
    std::vector<T*>& cache = Cache().objects;
    if (cache.empty()) Refill(cache);
    if (cache.empty()) return new T;
    T* object = cache.back();
    cache.pop_back();
    return object;
  }

  static void Give(T* object) {
    object->Recycle();
    if constexpr (kHasAddressSanitizer) {
      delete object;
      return;
    }
    std::vector<T*>& cache = Cache().objects;
    cache.push_back(object);
    if (cache.size() >= 2 * kBatch) Spill(cache, kBatch);
  }

 private:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kDepotLimit = 4096;

  struct Depot {
    Mutex mutex;
    std::vector<T*> objects NEREID_GUARDED_BY(mutex);
  };
  struct LocalCache {
    std::vector<T*> objects;
    LocalCache() { objects.reserve(2 * kBatch); }
    ~LocalCache() { Spill(objects, objects.size()); }
  };

  // Leaked on purpose: objects may come back while the process ends.
  static Depot& TheDepot() {
    static Depot* const depot = new Depot;
    return *depot;
  }
  static LocalCache& Cache() { return PerThread<LocalCache>::Get(); }
  static void Refill(std::vector<T*>& cache) {
    Depot& depot = TheDepot();
    MutexLock lock(depot.mutex);
    for (size_t i = 0; i < kBatch && !depot.objects.empty(); ++i) {
      cache.push_back(depot.objects.back());
      depot.objects.pop_back();
    }
  }
  static void Spill(std::vector<T*>& cache, size_t count) {
    Depot& depot = TheDepot();
    std::vector<std::unique_ptr<T>> surplus;
    MutexLock lock(depot.mutex);
    for (; count > 0; --count) {
      if (depot.objects.size() < kDepotLimit) {
        depot.objects.push_back(cache.back());
      } else {
        surplus.emplace_back(cache.back());
      }
      cache.pop_back();
    }
  }
};

}  // namespace nereid::base
