// SPDX-License-Identifier: Apache-2.0
// The memory that the server shares with one worker: without a name, sealed against being shrunk or
// grown, and far larger than what is used of it, which is all that takes memory. And the blocks in
// the server's half of it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend_kit/error.h"
#include "python_backend/protocol.h"

namespace nereid::python {

// Immutable but for its contents.
class Region {
 public:
  static backend::Result<std::unique_ptr<Region>> Create();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  int fd() const { return fd_; }
  uint64_t size() const { return size_; }
  // Where the worker's blocks start.
  uint64_t worker_begin() const { return size_ / 2; }
  Control& control() const { return *reinterpret_cast<Control*>(base_); }
  char* base() const { return base_; }
  // Whether these bytes lie among the blocks.
  bool Holds(uint64_t offset, uint64_t size) const {
    return offset >= kBlocksBegin && offset <= size_ && size <= size_ - offset;
  }
  // Needs Holds.
  char* At(uint64_t offset) const { return base_ + offset; }
  // Gives the memory of a range back; it reads as zeros then. Whole pages.
  void Forget(uint64_t offset, uint64_t size) const;

 private:
  Region(int fd, char* base, uint64_t size) : fd_(fd), base_(base), size_(size) {}

  const int fd_;
  char* const base_;
  const uint64_t size_;
};

// The server's blocks. Thread-safe.
class BlockPool {
 public:
  explicit BlockPool(const Region& region);

  struct Place {
    uint64_t offset;
    uint64_t size;
    bool is_resident;
    bool is_held;
  };

  // A block in the server's hands. What was shared stays until the worker lets it go, too.
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
    void Share() const { header().state.store(1, std::memory_order_relaxed); }

   private:
    BlockPool* pool_ = nullptr;
    Place* place_ = nullptr;
  };

  // With room for `size` bytes after the header, 64-byte aligned. Not cleared.
  backend::Result<Block> Allocate(uint64_t size);

 private:
  void Drop(Place* place);
  // Takes back what nobody uses any more.
  void Sweep();
  void Free(Place* place);

  const Region& region_;
  std::mutex mutex_;
  uint64_t next_;
  uint64_t free_bytes_ = 0;  // resident ones
  std::deque<Place> places_;
  std::map<uint64_t, std::vector<Place*>> free_;  // by size
  std::vector<Place*> busy_;
};

}  // namespace nereid::python
