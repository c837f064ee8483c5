// SPDX-License-Identifier: Apache-2.0
#include "http1/receive_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nereid::http1 {
namespace {

// A smaller read is not worth a system call.
constexpr size_t kMinRoom = 2 << 10;

size_t RoundUp(size_t n) {
  return (n + base::kBufferAlignment - 1) / base::kBufferAlignment * base::kBufferAlignment;
}

}  // namespace

size_t ReceiveBuffer::ReadPosition(size_t from) const {
  return RoundUp(from + aligned_offset_) - aligned_offset_;
}

std::span<std::byte> ReceiveBuffer::Room() {
  const size_t have = size();
  if (memory_) {
    const bool is_ours = memory_.unique() && (!is_pinned_ || pinned_);
    if (have == 0) {
      begin_ = end_ = ReadPosition(is_ours ? 0 : RoundUp(end_) + base::kBufferPadding);
    } else if (is_ours && begin_ > 0 && memory_.capacity() - end_ < kMinRoom) {
      std::memmove(memory_.data(), memory_.data() + begin_, have);
      begin_ = 0;
      end_ = have;
    }
    if (end_ < memory_.capacity() && memory_.capacity() - end_ >= kMinRoom) return Free();
  }
  const size_t position = ReadPosition(0);
  base::BufferRef fresh = base::AcquireBuffer(std::max(read_bytes_, position + have * 2));
  if (!fresh) return {};
  if (have > 0) std::memcpy(fresh.data() + position, memory_.data() + begin_, have);
  if (is_pinned_ && !pinned_) pinned_ = std::move(memory_);
  memory_ = std::move(fresh);
  begin_ = position;
  end_ = position + have;
  return Free();
}

// A client's next request mostly has the size of its last one. If it fits a large read, it costs
// one system call; if it fits no read at all, less of it has to be copied the less of it is read
// with its head.
void ReceiveBuffer::ExpectSize(uint64_t body_bytes, bool is_unknown) {
  const uint64_t taken = begin_ + body_bytes;
  const bool is_large = is_unknown || (taken > kSmallBytes && taken <= kLargeBytes);
  read_bytes_ = is_large ? kLargeBytes : kSmallBytes;
}

bool ReceiveBuffer::Align(size_t offset, bool may_move) {
  const size_t misplaced = (begin_ + offset) % base::kBufferAlignment;
  if (misplaced == 0) return true;
  const size_t shift = base::kBufferAlignment - misplaced;
  if (!may_move || memory_.capacity() - end_ < shift) return false;
  std::memmove(memory_.data() + begin_ + shift, memory_.data() + begin_, size());
  begin_ += shift;
  end_ += shift;
  return true;
}

std::span<std::byte> ReceiveBuffer::Spare() const {
  return memory_ ? Free() : std::span<std::byte>();
}

}  // namespace nereid::http1
