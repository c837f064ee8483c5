// SPDX-License-Identifier: Apache-2.0
// Space is reserved in the common count before an entry is inserted, so all entries together never
// exceed the capacity, whatever the number of inserting threads. Entries are evicted by time
// stamps: each shard is ordered by use, and the shard whose last entry is the oldest evicts it.
#include "local_cache/store.h"

#include <chrono>
#include <new>

namespace nereid::local_cache {
namespace {

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

std::shared_ptr<Blob> Blob::Create(std::vector<size_t> sizes) {
  auto blob = std::make_shared<Blob>();
  for (const size_t size : sizes) {
    if (__builtin_add_overflow(blob->byte_size_, size, &blob->byte_size_)) return nullptr;
  }
  blob->bytes_.reset(new (std::nothrow) std::byte[blob->byte_size_]);
  if (blob->bytes_ == nullptr) return nullptr;
  blob->sizes_ = std::move(sizes);
  return blob;
}

void Store::NoteOldest(Shard& shard) {
  shard.oldest_ns.store(shard.entries.empty() ? kNever : shard.entries.back().used_at_ns);
}

std::shared_ptr<const Blob> Store::Find(std::string_view key) {
  Shard& shard = ShardOf(key);
  const backend::MutexLock lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found == shard.by_key.end()) return nullptr;
  const Entries::iterator entry = found->second;
  entry->used_at_ns = NowNs();
  shard.entries.splice(shard.entries.begin(), shard.entries, entry);
  NoteOldest(shard);
  return entry->blob;
}

bool Store::Has(std::string_view key) const {
  const Shard& shard = ShardOf(key);
  const backend::MutexLock lock(shard.mutex);
  return shard.by_key.contains(key);
}

bool Store::EvictOne() {
  while (true) {
    Shard* oldest = nullptr;
    uint64_t oldest_ns = kNever;
    for (Shard& shard : shards_) {
      const uint64_t ns = shard.oldest_ns.load();
      if (ns < oldest_ns) {
        oldest_ns = ns;
        oldest = &shard;
      }
    }
    if (oldest == nullptr) return false;
    Entries evicted;  // freed outside the lock
    const backend::MutexLock lock(oldest->mutex);
    if (oldest->entries.empty()) continue;  // another thread was faster
    evicted.splice(evicted.begin(), oldest->entries, std::prev(oldest->entries.end()));
    oldest->by_key.erase(evicted.front().key);
    NoteOldest(*oldest);
    used_.fetch_sub(Cost(evicted.front().key, evicted.front().blob->byte_size()));
    count_.fetch_sub(1);
    evictions_.fetch_add(1);
    return true;
  }
}

Store::InsertResult Store::Insert(std::string_view key, std::shared_ptr<const Blob> blob) {
  const size_t cost = Cost(key, blob->byte_size());
  if (!Fits(key, blob->byte_size())) return InsertResult::kTooLarge;
  // Other threads may have reserved space that they do not use yet. If there is nothing left to
  // evict, this entry is not stored.
  used_.fetch_add(cost);
  while (used_.load() > capacity_) {
    if (!EvictOne()) {
      used_.fetch_sub(cost);
      return InsertResult::kTooLarge;
    }
  }
  Entries added;
  added.push_back({std::string(key), std::move(blob), 0});
  Shard& shard = ShardOf(key);
  const backend::MutexLock lock(shard.mutex);
  if (shard.by_key.contains(key)) {
    used_.fetch_sub(cost);
    return InsertResult::kExists;
  }
  added.front().used_at_ns = NowNs();
  shard.by_key.emplace(added.front().key, added.begin());
  shard.entries.splice(shard.entries.begin(), added);
  NoteOldest(shard);
  count_.fetch_add(1);
  return InsertResult::kInserted;
}

}  // namespace nereid::local_cache
