// SPDX-License-Identifier: Apache-2.0
// Runs of bytes by key, within a bound: what was not used for the longest time makes room for what
// is new. Knows nothing of the server.
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
  // Null when memory is exhausted.
  static std::shared_ptr<Blob> Create(std::vector<size_t> sizes);

  const std::vector<size_t>& sizes() const { return sizes_; }
  std::byte* data() const { return bytes_.get(); }
  size_t byte_size() const { return byte_size_; }

 private:
  std::vector<size_t> sizes_;
  size_t byte_size_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

// Thread-safe. The bound holds for all entries together, counting what each costs beside its bytes;
// keys are spread over shards, each with its own lock, under which nothing is copied. An entry that
// is being read when it has to go lives until its reader is done.
class Store {
 public:
  // What an entry costs beside its bytes and its key.
  static constexpr size_t kEntryOverhead = 128;
  // A larger capacity counts as this; sums of sizes below it do not overflow.
  static constexpr size_t kMostBytes = SIZE_MAX / 4;

  enum class InsertResult { kInserted, kExists, kTooLarge };

  explicit Store(size_t capacity_bytes) : capacity_(std::min(capacity_bytes, kMostBytes)) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Null when there is nothing under `key`; a use like any other.
  std::shared_ptr<const Blob> Find(std::string_view key);
  bool Has(std::string_view key) const;
  // Whether something of that size has a place at all.
  bool Fits(std::string_view key, size_t byte_size) const {
    return byte_size <= capacity_ && Cost(key, byte_size) <= capacity_;
  }
  InsertResult Insert(std::string_view key, std::shared_ptr<const Blob> blob);

  size_t capacity() const { return capacity_; }
  // Never above the capacity while nobody inserts.
  size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  size_t entry_count() const { return count_.load(std::memory_order_relaxed); }
  // How many entries had to make room.
  size_t eviction_count() const { return evictions_.load(std::memory_order_relaxed); }

 private:
  // A kept entry, in the order of use.
  struct Entry {
    std::string key;
    std::shared_ptr<const Blob> blob;
    uint64_t used_at_ns = 0;
  };
  using Entries = std::list<Entry>;
  static constexpr uint64_t kNever = UINT64_MAX;
  // A part of the store with a lock of its own.
  struct alignas(64) Shard {
    mutable backend::Mutex mutex;
    Entries entries NEREID_KIT_GUARDED_BY(mutex);  // most recently used first
    // The keys are those of the entries.
    std::unordered_map<std::string_view, Entries::iterator> by_key NEREID_KIT_GUARDED_BY(mutex);
    // Of the last entry; kNever without any. Written under mutex, read to choose a shard.
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
  // Removes an entry that was not used for longer than any other, as far as that can be told
  // without stopping everybody. False when there is none.
  bool EvictOne();

  const size_t capacity_;
  std::atomic<size_t> used_{0};
  std::atomic<size_t> count_{0};
  std::atomic<size_t> evictions_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace nereid::local_cache
