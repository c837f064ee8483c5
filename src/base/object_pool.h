// SPDX-License-Identifier: Apache-2.0
// Recycles objects of one type without touching the allocator in steady state. Each thread keeps a
// few; surplus moves through a shared depot in batches, so that objects taken on one thread and
// given back on another cost a lock only once per batch. A thread that only gives back keeps fewer:
// a server of many models has many of those. TrimObjectPools frees what the depots hold in vain. T
// needs `void Recycle()`, which drops what it holds and leaves it ready for reuse. Thread-safe.
//
// Under AddressSanitizer nothing is kept, so that whoever uses an object after giving it back is
// found.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/per_thread.h"
#include "base/platform.h"

namespace nereid::base {

// Frees what has lain in the depots of all pools since the last call. Thread-safe.
void TrimObjectPools();

namespace object_pool_internal {
// TrimObjectPools calls `trim` from now on.
void Register(void (*trim)());
}  // namespace object_pool_internal

// All objects of one type; see the top of this file.
template <typename T>
class ObjectPool {
 public:
  static T* Take() {
    if constexpr (kHasAddressSanitizer) return new T;
    LocalCache& local = Cache();
    std::vector<T*>& cache = local.objects;
    local.is_taker = true;
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
    LocalCache& local = Cache();
    local.objects.push_back(object);
    if (local.objects.size() >= (local.is_taker ? 2 * kBatch : kGiverBatch)) {
      Spill(local.objects, local.is_taker ? kBatch : kGiverBatch);
      // Until it takes one again.
      local.is_taker = false;
    }
  }

 private:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kGiverBatch = 8;
  static constexpr size_t kDepotLimit = 4096;

  // What threads have given back beyond their own caches.
  struct Depot {
    Mutex mutex;
    std::vector<T*> objects NEREID_GUARDED_BY(mutex);
    size_t least NEREID_GUARDED_BY(mutex) = 0;  // fewest since the last trim: what nobody needed
    Depot() { object_pool_internal::Register(&Trim); }
  };
  // What one thread keeps.
  struct LocalCache {
    std::vector<T*> objects;
    bool is_taker = false;
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
    depot.least = std::min(depot.least, depot.objects.size());
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
  static void Trim() {
    std::vector<std::unique_ptr<T>> unused;
    Depot& depot = TheDepot();
    MutexLock lock(depot.mutex);
    for (; depot.least > 0; --depot.least) {
      unused.emplace_back(depot.objects.back());
      depot.objects.pop_back();
    }
    depot.least = depot.objects.size();
  }
};

}  // namespace nereid::base
