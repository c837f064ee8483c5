// SPDX-License-Identifier: Apache-2.0
// Recycles objects of one type without calling the allocator in steady state. Each thread keeps a
// few; surplus moves through a shared depot in batches, so that objects taken on one thread and
// given back on another cost a lock only once per batch. Threads that only give back keep fewer,
// because a server of many models has many such threads. TrimObjectPools frees the objects that the
// depots did not need. T needs `void Recycle()`, which drops what the object holds and leaves it
// ready for reuse. Thread-safe.
//
// Under AddressSanitizer nothing is kept, so that a use after giving back is reported.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/per_thread.h"
#include "base/platform.h"

namespace nereid::base {

// Frees objects that the depots of all pools have not needed since the last call. Thread-safe.
void TrimObjectPools();

namespace object_pool_internal {
// Makes TrimObjectPools call `trim`.
void Register(void (*trim)());
}  // namespace object_pool_internal

// All objects of type T; see the top of this file.
template <typename T>
class ObjectPool {
 public:
  static T* Take() {
    if constexpr (kHasAddressSanitizer) return new T;
    LocalCache& local = Cache();
    local.is_taker = true;
    if (local.count == 0) [[unlikely]]
      return TakeMore(local);
    return local.objects[--local.count];
  }

  static void Give(T* object) {
    object->Recycle();
    if constexpr (kHasAddressSanitizer) {
      delete object;
      return;
    }
    LocalCache& local = Cache();
    local.objects[local.count++] = object;
    if (local.count >= (local.is_taker ? LocalCache::kSize : kGiverBatch)) [[unlikely]]
      Spill(local, local.is_taker ? kBatch : kGiverBatch);
  }

 private:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kGiverBatch = 8;
  static constexpr size_t kDepotLimit = 4096;

  // The objects that threads have given back beyond their own caches.
  struct Depot {
    Mutex mutex;
    std::vector<T*> objects NEREID_GUARDED_BY(mutex);
    size_t least NEREID_GUARDED_BY(mutex) = 0;  // fewest since the last trim: these were not needed
    Depot() { object_pool_internal::Register(&Trim); }
  };
  // The objects that one thread keeps.
  struct LocalCache {
    static constexpr size_t kSize = 2 * kBatch;
    ~LocalCache() { Spill(*this, count); }

    std::array<T*, kSize> objects{};  // the first `count`
    size_t count = 0;
    bool is_taker = false;
  };

  // Leaked on purpose: objects may be given back while the process exits.
  static Depot& TheDepot() {
    static Depot* const depot = new Depot;
    return *depot;
  }
  static LocalCache& Cache() { return PerThread<LocalCache>::Get(); }
  // Fills the empty cache from the depot, and takes an object from it, or makes one.
  [[gnu::noinline]] static T* TakeMore(LocalCache& cache) {
    {
      Depot& depot = TheDepot();
      MutexLock lock(depot.mutex);
      while (cache.count < kBatch && !depot.objects.empty()) {
        cache.objects[cache.count++] = depot.objects.back();
        depot.objects.pop_back();
      }
      depot.least = std::min(depot.least, depot.objects.size());
    }
    return cache.count == 0 ? new T : cache.objects[--cache.count];
  }
  // Moves `count` objects of the cache to the depot.
  [[gnu::noinline]] static void Spill(LocalCache& cache, size_t count) {
    // The thread counts as one that only gives back until it takes an object again.
    cache.is_taker = false;
    Depot& depot = TheDepot();
    std::vector<std::unique_ptr<T>> surplus;
    MutexLock lock(depot.mutex);
    for (; count > 0; --count) {
      T* const object = cache.objects[--cache.count];
      if (depot.objects.size() < kDepotLimit) {
        depot.objects.push_back(object);
      } else {
        surplus.emplace_back(object);
      }
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
