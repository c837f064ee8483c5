// SPDX-License-Identifier: Apache-2.0
// The buffer for the heads and small bodies of one connection. The position of a read is chosen so
// that, if the next request has the layout of the last one, the bytes that its handler needs
// aligned are 64-byte aligned in place. The memory is reused from its start only if nothing else
// holds it; otherwise reading continues after the bytes in use (leaving the readable padding that
// bodies are promised) or in new memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/buffer.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class ReceiveBuffer {
 public:
  // The sizes of one read: for a client whose requests fit, and for any other.
  static constexpr size_t kSmallBytes = (4 << 10) - base::kBufferOverhead;
  static constexpr size_t kLargeBytes = (16 << 10) - base::kBufferOverhead;

  // What has arrived and was not consumed.
  std::string_view bytes() const {
    if (empty()) return {};
    return {reinterpret_cast<const char*>(memory_.data()) + begin_, end_ - begin_};
  }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return end_ == begin_; }
  void Consume(size_t size) { begin_ += size; }
  void ConsumeAll() { begin_ = end_; }

  // Returns memory for the next read, after bytes(), which may move; empty if memory is exhausted.
  std::span<std::byte> Room();
  // Reports that `size` bytes were read into it.
  void Received(size_t size) { end_ += size; }

  // Keeps views of consumed bytes valid until Unpin, whatever arrives meanwhile.
  void Pin() { is_pinned_ = true; }
  void Unpin() {
    is_pinned_ = false;
    pinned_.Reset();
  }
  // Frees the memory until the next Room: the next request of any connection then gets a buffer
  // that is still in the processor's cache, and ten thousand idle connections need none.
  void Release() {
    memory_.Reset();
    begin_ = end_ = 0;
  }

  // Expects the next request to be like this one: with a body of so many bytes, or of unknown
  // length.
  void ExpectSize(uint64_t body_bytes, bool is_unknown);
  // Expects the next request to have its aligned byte at this distance from its first one.
  void ExpectAligned(size_t offset) { aligned_offset_ = offset % base::kBufferAlignment; }

  // Makes byte `offset` of bytes() 64-byte aligned, moving all of them if necessary and allowed;
  // returns false if there is no room.
  bool Align(size_t offset, bool may_move);
  // Keeps the memory of bytes() alive.
  const base::BufferRef& memory() const { return memory_; }
  // Returns the free memory after bytes(), for other uses until the next Room; may be empty.
  std::span<std::byte> Spare() const;

 private:
  // Returns the first position from `from` on at which a request like the last one has its aligned
  // byte aligned.
  size_t ReadPosition(size_t from) const;
  std::span<std::byte> Free() const { return {memory_.data() + end_, memory_.capacity() - end_}; }

  base::BufferRef memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t read_bytes_ = kSmallBytes;  // the size of new memory
  size_t aligned_offset_ = 0;        // in a request like the last one
  bool is_pinned_ = false;
  base::BufferRef pinned_;  // what is pinned, if that is not in memory_ any more
};

}  // namespace nereid::http1
