// SPDX-License-Identifier: Apache-2.0
// A bounded map from keys to bytes with least-recently-used eviction. Independent of the server.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend_kit/mutex.h"

namespace nereid::local_cache {

// One entry: its buffers one after the other. Immutable once stored.
class Blob {
 public:
  // Returns null when memory is exhausted.
  static std::shared_ptr<Blob> Create(std::vector<size_t> sizes);

  const std::vector<size_t>& sizes() const { return sizes_; }
  std::byte* data() const { return bytes_.get(); }
  size_t byte_size() const { return byte_size_; }

 private:
  std::vector<size_t> sizes_;
  size_t byte_size_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

// The store. Thread-safe. The capacity applies to all entries together, including the overhead of
// each. Keys are spread over shards with a lock each, under which nothing is copied. An entry that
// is evicted while it is being read lives until the reader has finished.
class Store {
 public:
  // The cost of an entry besides its bytes and its key.
  static constexpr size_t kEntryOverhead = 128;
  // The largest capacity; sums of sizes below it do not overflow.
  static constexpr size_t kMaxBytes = SIZE_MAX / 4;

  // The result of an insertion; only kInserted changes the store.
  enum class InsertResult { kInserted, kExists, kTooLarge };

  explicit Store(size_t capacity_bytes) : capacity_(std::min(capacity_bytes, kMaxBytes)) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Returns null if there is no such key. Counts as a use.
  std::shared_ptr<const Blob> Find(std::string_view key);
  bool Has(std::string_view key) const;
  // Whether an entry of that size can be stored at all.
  bool Fits(std::string_view key, size_t byte_size) const {
    return byte_size <= capacity_ && Cost(key, byte_size) <= capacity_;
  }
  InsertResult Insert(std::string_view key, std::shared_ptr<const Blob> blob);

  size_t capacity() const { return capacity_; }
  // Does not exceed the capacity, except temporarily during insertions.
  size_t used_bytes() const { return used_.load(); }
  size_t entry_count() const { return count_.load(); }
  // The number of evicted entries.
  size_t eviction_count() const { return evictions_.load(); }

 private:
  // A stored entry, in the order of use.
  struct Entry {
    std::string key;
    std::shared_ptr<const Blob> blob;
    uint64_t used_at_ns = 0;
  };
  using Entries = std::list<Entry>;
  static constexpr uint64_t kNever = UINT64_MAX;
  // A part of the store with its own lock.
  struct alignas(64) Shard {
    mutable backend::Mutex mutex;
    Entries entries NEREID_KIT_GUARDED_BY(mutex);  // most recently used first
    // The keys are stored in the entries.
    std::unordered_map<std::string_view, Entries::iterator> by_key NEREID_KIT_GUARDED_BY(mutex);
    // The time of the last entry, or kNever if there is none. Written under mutex, read without it
    // to choose a shard.
    std::atomic<uint64_t> oldest_ns{kNever};
  };
  static constexpr size_t kShards = 16;

  static size_t Cost(std::string_view key, size_t byte_size) {
    return byte_size + key.size() + kEntryOverhead;
  }
  Shard& ShardOf(std::string_view key) {
    return shards_[std::hash<std::string_view>()(key) % kShards];
  }
  const Shard& ShardOf(std::string_view key) const {
    return shards_[std::hash<std::string_view>()(key) % kShards];
  }
  static void NoteOldest(Shard& shard) NEREID_KIT_REQUIRES(shard.mutex);
  // Evicts the least recently used entry, as far as that can be determined without locking all
  // shards. Returns false if there is none.
  bool EvictOne();

  const size_t capacity_;
  std::atomic<size_t> used_{0};
  std::atomic<size_t> count_{0};
  std::atomic<size_t> evictions_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace nereid::local_cache
