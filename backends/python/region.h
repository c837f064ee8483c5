// SPDX-License-Identifier: Apache-2.0
// The memory that the server shares with one worker, and the server's blocks in it. The memory has
// no name, is sealed against being shrunk or grown, and is far larger than what is used of it; only
// used pages occupy memory.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"
#include "python_backend/protocol.h"

namespace nereid::python {

// The shared memory. Immutable except for its contents.
class Region {
 public:
  static backend::Result<std::unique_ptr<Region>> Create();
  // Maps the memory that another process has created. Takes the descriptor.
  static backend::Result<std::unique_ptr<Region>> Open(int fd);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  int fd() const { return fd_; }
  uint64_t size() const { return size_; }
  // The server receives requests into the part that starts here, after its other blocks; the
  // worker's blocks follow.
  uint64_t inputs_begin() const { return size_ / 4; }
  uint64_t worker_begin() const { return size_ / 2; }
  Control& control() const { return *reinterpret_cast<Control*>(base_); }
  char* base() const { return base_; }
  // Returns whether these bytes lie among the blocks.
  bool Holds(uint64_t offset, uint64_t size) const {
    return offset >= kBlocksBegin && offset <= size_ && size <= size_ - offset;
  }
  // REQUIRES: Holds is true for the bytes that are used.
  char* At(uint64_t offset) const { return base_ + offset; }
  // Frees the memory of a range of whole pages, which reads as zeros afterwards.
  void Forget(uint64_t offset, uint64_t size) const;

 private:
  Region(int fd, char* base, uint64_t size) : fd_(fd), base_(base), size_(size) {}

  const int fd_;
  char* const base_;
  const uint64_t size_;
};

// Which part of the region a pool has, and how much of it may be used.
struct BlockPoolOptions {
  uint64_t begin = 0;  // offset of its part of the region
  uint64_t end = 0;
  uint64_t most_bytes = UINT64_MAX;           // in use at a time
  uint64_t kept_bytes = uint64_t{256} << 20;  // that freed blocks keep for later ones
};

// The server's blocks in a part of the region. Thread-safe.
class BlockPool {
 public:
  BlockPool(const Region& region, const BlockPoolOptions& options)
      : region_(region), options_(options), next_(options.begin) {}

  // The pool's record of a block.
  struct Place {
    uint64_t offset;
    uint64_t size;
    bool is_resident;
    bool is_taken;   // Take returned it
    uint32_t holds;  // how many holds the server has
  };

  // A block that the server holds. A block that was shared stays until the worker has released it
  // too.
  class Block {
   public:
    Block() = default;
    Block(BlockPool* pool, Place* place) : pool_(pool), place_(place) {}
    Block(Block&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), place_(other.place_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Block() {
      if (pool_ != nullptr) pool_->Drop(place_);
    }

    bool exists() const { return pool_ != nullptr; }
    uint64_t offset() const { return place_->offset; }
    uint64_t payload_offset() const { return place_->offset + sizeof(BlockHeader); }
    BlockHeader& header() const {
      return *reinterpret_cast<BlockHeader*>(pool_->region_.At(place_->offset));
    }
    char* payload() const { return pool_->region_.At(payload_offset()); }
    uint64_t capacity() const { return place_->size - sizeof(BlockHeader); }
    // From now on the worker uses it.
    void Share() const { header().state.store(kBlockInUse, std::memory_order_relaxed); }

   private:
    BlockPool* pool_ = nullptr;
    Place* place_ = nullptr;
  };

  // Returns a block with room for `size` bytes after the header, 64-byte aligned and not cleared.
  backend::Result<Block> Allocate(uint64_t size);
  // Returns another hold of the block that contains these bytes. Returns none if no held block
  // contains them, or if it was taken before, because a block is shared with the worker only once.
  Block Take(std::span<const char> bytes);
  // The bytes of blocks in use, and of some that were.
  uint64_t busy_bytes() const { return busy_bytes_.load(std::memory_order_relaxed); }

 private:
  void Drop(Place* place);
  // Frees the blocks that neither side uses any more.
  void Sweep() NEREID_KIT_REQUIRES(mutex_);
  void Free(Place* place) NEREID_KIT_REQUIRES(mutex_);

  const Region& region_;
  const BlockPoolOptions options_;
  backend::Mutex mutex_;
  uint64_t next_ NEREID_KIT_GUARDED_BY(mutex_);
  uint64_t free_bytes_ NEREID_KIT_GUARDED_BY(mutex_) = 0;  // resident bytes of free blocks
  std::atomic<uint64_t> busy_bytes_{0};
  // In the order of their offsets. The mutex guards the contents of each place, too.
  std::deque<Place> places_ NEREID_KIT_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<Place*>> free_ NEREID_KIT_GUARDED_BY(mutex_);  // by size
  std::vector<Place*> busy_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
