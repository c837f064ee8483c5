// SPDX-License-Identifier: Apache-2.0
// Where the heads and small bodies of one connection arrive. The place of a read is chosen so that,
// if the next request is laid out like the last, the bytes that its handler wants aligned come out
// 64-byte aligned where they lie. The memory is started over only when nobody else holds it;
// otherwise reading goes on behind the bytes in use (leaving the readable padding that bodies are
// promised) or in fresh memory.
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
  // What one read takes: of a client whose requests fit, and of any other.
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

  // Memory for the next read, behind bytes(), which may move; empty when memory is exhausted.
  std::span<std::byte> Room();
  // `size` bytes were read into it.
  void Received(size_t size) { end_ += size; }

  // Views of what was consumed stay valid until Unpin, whatever arrives meanwhile.
  void Pin() { is_pinned_ = true; }
  void Unpin() {
    is_pinned_ = false;
    pinned_.Reset();
  }
  // Has no memory until the next Room: the next request of any connection then finds a piece that
  // is still in the processor's cache, and ten thousand idle connections need none.
  void Release() {
    memory_.Reset();
    begin_ = end_ = 0;
  }

  // The next request is expected to be of the form of this one: with a body of so many bytes, or
  // of unknown length.
  void ExpectSize(uint64_t body_bytes, bool is_unknown);
  // The same: its aligned byte is this far from its first one.
  void ExpectAligned(size_t offset) { aligned_offset_ = offset % base::kBufferAlignment; }

  // Whether byte `offset` of bytes() lies at a 64-byte boundary, if need be after moving all of
  // them, for which there may be no room.
  bool Align(size_t offset, bool may_move);
  // Keeps the memory that bytes() lie in.
  const base::BufferRef& memory() const { return memory_; }
  // What is free behind bytes(), for other uses until the next Room; empty without memory.
  std::span<std::byte> Spare() const;

 private:
  // The first place from `from` on at which a request like the last one has its aligned byte
  // aligned.
  size_t ReadPosition(size_t from) const;
  std::span<std::byte> Free() const { return {memory_.data() + end_, memory_.capacity() - end_}; }

  base::BufferRef memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t read_bytes_ = kSmallBytes;  // of fresh memory
  size_t aligned_offset_ = 0;        // in a request like the last one
  bool is_pinned_ = false;
  base::BufferRef pinned_;  // what is pinned, when that is not in memory_ any more
};

}  // namespace nereid::http1
