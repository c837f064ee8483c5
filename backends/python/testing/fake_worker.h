// SPDX-License-Identifier: Apache-2.0
// The shared memory as a worker uses it, for tests that play the worker.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "python_backend/region.h"

namespace nereid::python {

// The worker's end of a region. Thread-compatible.
class FakeWorker {
 public:
  // Makes its own region.
  FakeWorker() : own_(std::move(Region::Create()).value()), region_(own_.get()) {}
  // Uses a region that outlives this object.
  explicit FakeWorker(const Region& region) : region_(&region) {}

  const Region& region() const { return *region_; }
  Control& control() { return region_->control(); }

  // Writes a block of the worker with this payload; returns its offset.
  uint64_t Put(std::string_view payload) {
    const uint64_t offset = next_;
    next_ += (sizeof(BlockHeader) + payload.size() + 4095) / 4096 * 4096;
    BlockHeader& header = Header(offset);
    header.state.store(kBlockInUse);
    header.size = payload.size();
    std::memcpy(region_->At(offset + sizeof(BlockHeader)), payload.data(), payload.size());
    return offset;
  }
  // Frees all blocks.
  void Reset() { next_ = region_->worker_begin(); }
  BlockHeader& Header(uint64_t offset) {
    return *reinterpret_cast<BlockHeader*>(region_->At(offset));
  }
  // Appends a block's offset to the ring of calls.
  void Append(uint64_t offset) {
    const uint32_t head = control().ring_head.load();
    control().ring[head % kRingCapacity] = offset;
    control().ring_head.store(head + 1);
    control().ring_bell.fetch_add(1);
  }
  // Makes a call; returns its block.
  uint64_t MakeCall(Call kind, std::string_view payload) {
    const uint64_t offset = Put(payload);
    Header(offset).kind = static_cast<uint32_t>(kind);
    Append(offset);
    return offset;
  }
  // Returns the reply to a call, whose block must be in the state kBlockReplied.
  std::string ReplyTo(uint64_t call) {
    const BlockHeader& header = Header(call);
    if (header.reply_offset == 0) return {};
    const char* const payload = region_->At(header.reply_offset + sizeof(BlockHeader));
    return {payload, header.reply_size};
  }
  // Reports in a mailbox how the work with this ticket ended; `block` is 0 for an empty result.
  static void Finish(Mailbox& box, uint32_t ticket, Outcome outcome, uint64_t block,
                     uint64_t size) {
    box.kind = static_cast<uint32_t>(outcome);
    box.ticket = ticket;
    box.offset = block;
    box.size = size;
    box.word.fetch_add(1);
  }

 private:
  const std::unique_ptr<Region> own_;
  const Region* const region_;
  uint64_t next_ = region_->worker_begin();
};

}  // namespace nereid::python
