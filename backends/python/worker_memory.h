// SPDX-License-Identifier: Apache-2.0
// The memory that the server shares with one worker, and its own blocks in it.
#pragma once

#include <atomic>
#include <memory>

#include "python_backend/region.h"

namespace nereid::python {

// Thread-safe.
class WorkerMemory {
 public:
  explicit WorkerMemory(std::unique_ptr<Region> region)
      : region_(std::move(region)),
        blocks_(*region_, {.begin = kBlocksBegin, .end = region_->inputs_begin()}),
        inputs_(*region_, {.begin = region_->inputs_begin(),
                           .end = region_->worker_begin(),
                           .most_bytes = kMaxInputBytes,
                           .kept_bytes = kKeptInputBytes}) {}

  const Region& region() const { return *region_; }
  BlockPool& blocks() { return blocks_; }
  // The blocks into which requests are received.
  BlockPool& inputs() { return inputs_; }
  // The number of requests that are in blocks of `inputs`, or on their way there.
  int lease_count() const { return leases_.load(std::memory_order_relaxed); }
  void CountLease(int change) { leases_.fetch_add(change, std::memory_order_relaxed); }

 private:
  // Clients that stop in the middle of a request hold no more than this. There are few block sizes:
  // this much of each size fits into the part of the region.
  static constexpr uint64_t kMaxInputBytes = uint64_t{256} << 20;
  static constexpr uint64_t kKeptInputBytes = uint64_t{128} << 20;

  const std::unique_ptr<Region> region_;
  BlockPool blocks_;
  BlockPool inputs_;
  std::atomic<int> leases_{0};
};

}  // namespace nereid::python
