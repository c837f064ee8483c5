// SPDX-License-Identifier: Apache-2.0
// libtritoncache_local.so: stores responses in the server's memory. Setting: `size`, in bytes.
// Error texts follow Triton's local cache.
#include <chrono>
#include <cmath>

#include "cache_kit/entry.h"
#include "cache_kit/settings.h"
#include "gauges.h"
#include "local_cache/store.h"
#include "nereid/cache_traits.h"

namespace {

using nereid::backend::EntryPoint;
using nereid::backend::Result;
using nereid::backend::StrCat;
using nereid::cache::Error;
using nereid::local_cache::Blob;
using nereid::local_cache::Store;

using nereid::local_cache::Gauge;

// The object behind TRITONCACHE_Cache.
struct LocalCache {
  explicit LocalCache(size_t size) : store(size) {}
  Store store;
  nereid::local_cache::Gauges gauges;
};

LocalCache* FromHandle(TRITONCACHE_Cache* cache) { return reinterpret_cast<LocalCache*>(cache); }

// Adds its lifetime to one of the cache's gauges.
class Stopwatch {
 public:
  Stopwatch(LocalCache& cache, Gauge gauge) : cache_(cache), gauge_(gauge) {}
  ~Stopwatch() {
    const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - start_;
    cache_.gauges.Add(gauge_, std::floor(us.count()));
  }

 private:
  LocalCache& cache_;
  const Gauge gauge_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void ShowFill(LocalCache& cache) {
  const Store& store = cache.store;
  cache.gauges.Set(Gauge::kUtilization,
                   static_cast<double>(store.used_bytes()) / static_cast<double>(store.capacity()));
  cache.gauges.Set(Gauge::kEntries, static_cast<double>(store.entry_count()));
  cache.gauges.Set(Gauge::kEvictions, static_cast<double>(store.eviction_count()));
}

Result<uint64_t> ReadSize(const char* config) {
  const nereid::cache::Settings settings(config);
  if (!settings.Has("size")) {
    return Error::InvalidArgument(
        "Failed to initialize LocalCache: config didn't contain a valid 'size' field.");
  }
  const auto text = settings.Text("size");
  if (!text) {
    return Error::InvalidArgument(
        "Failed to initialize LocalCache: 'size' config must be a string or uint type");
  }
  const auto size = nereid::cache::ParseNumber(*text);
  if (!size || *size == 0) {
    return Error::Internal(
        StrCat("Failed to initialize LocalCache: 'size' is not a number of bytes: '", *text, "'"));
  }
  return *size;
}

Error TooLarge(const Store& store, size_t byte_size) {
  return Error::Internal(StrCat("Requested byte_size: ", byte_size,
                                " is greater than total cache size: ", store.capacity()));
}

Error Exists(const char* key) {
  return {TRITONSERVER_ERROR_ALREADY_EXISTS, StrCat("key [", key, "] already exists")};
}

}  // namespace

NEREID_KIT_EXPORT uint32_t NEREIDCACHE_Traits(void) { return NEREIDCACHE_TRAIT_IN_PROCESS; }

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheInitialize(TRITONCACHE_Cache** cache,
                                                                  const char* config) {
  return EntryPoint([&]() -> Error {
    if (cache == nullptr) return Error::InvalidArgument("cache was nullptr");
    if (config == nullptr) return Error::InvalidArgument("cache config was nullptr");
    NEREID_KIT_TRY(nereid::cache::CheckApiVersion());
    NEREID_KIT_ASSIGN(const uint64_t size, ReadSize(config));
    *cache = reinterpret_cast<TRITONCACHE_Cache*>(new LocalCache(size));
    nereid::cache::Log(TRITONSERVER_LOG_INFO, __FILE__, __LINE__,
                       StrCat("Response Cache is created with size ", size));
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheFinalize(TRITONCACHE_Cache* cache) {
  return EntryPoint([&]() -> Error {
    if (cache == nullptr) return Error::InvalidArgument("cache was nullptr");
    delete FromHandle(cache);
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheLookup(TRITONCACHE_Cache* cache,
                                                              const char* key,
                                                              TRITONCACHE_CacheEntry* entry,
                                                              TRITONCACHE_Allocator* allocator) {
  return EntryPoint([&]() -> Error {
    NEREID_KIT_TRY(nereid::cache::CheckArguments(cache, key, entry, allocator));
    LocalCache& local = *FromHandle(cache);
    const Stopwatch stopwatch(local, Gauge::kLookupUs);
    const std::shared_ptr<const Blob> blob = local.store.Find(key);
    local.gauges.Add(Gauge::kLookups, 1);
    local.gauges.Add(blob == nullptr ? Gauge::kMisses : Gauge::kHits, 1);
    if (blob == nullptr) {
      return {TRITONSERVER_ERROR_NOT_FOUND, StrCat("key [", key, "] does not exist")};
    }
    return nereid::cache::CopyToServer(entry, allocator, blob->sizes(), blob->data());
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheInsert(TRITONCACHE_Cache* cache,
                                                              const char* key,
                                                              TRITONCACHE_CacheEntry* entry,
                                                              TRITONCACHE_Allocator* allocator) {
  return EntryPoint([&]() -> Error {
    NEREID_KIT_TRY(nereid::cache::CheckArguments(cache, key, entry, allocator));
    LocalCache& local = *FromHandle(cache);
    Store& store = local.store;
    const Stopwatch stopwatch(local, Gauge::kInsertionUs);
    if (store.Has(key)) return Exists(key);
    NEREID_KIT_ASSIGN(std::vector<size_t> sizes, nereid::cache::BufferSizes(entry));
    size_t total = 0;
    for (const size_t size : sizes) {
      // Checked after each addition, so that the sum cannot overflow.
      if (!store.Fits(key, size) || !store.Fits(key, total += size)) return TooLarge(store, total);
    }
    const std::shared_ptr<Blob> blob = Blob::Create(std::move(sizes));
    if (blob == nullptr) return Error::Unavailable("out of memory");
    NEREID_KIT_TRY(nereid::cache::CopyFromServer(entry, allocator, blob->sizes(), blob->data()));
    switch (store.Insert(key, blob)) {
      case Store::InsertResult::kInserted:
        ShowFill(local);
        return {};
      case Store::InsertResult::kExists:
        return Exists(key);
      case Store::InsertResult::kTooLarge:
        return TooLarge(store, total);
    }
    return {};
  });
}
