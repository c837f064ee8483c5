// SPDX-License-Identifier: Apache-2.0
#include "net/http2_output.h"

#include <algorithm>
#include <cstring>

namespace nereid::net {

bool Http2Output::Copy(const void* data, size_t size) {
  if (size == 0) return true;
  if (scratch_.empty() || scratch_.back().capacity() - scratch_used_ < size) {
    base::BufferRef block = base::AcquireBuffer(std::max(size, kScratchBytes));
    if (!block) return false;
    scratch_.push_back(std::move(block));
    scratch_used_ = 0;
  }
  std::byte* const place = scratch_.back().data() + scratch_used_;
  std::memcpy(place, data, size);
  scratch_used_ += size;
  Refer(place, size);
  return true;
}

void Http2Output::Refer(const std::byte* data, size_t size) {
  if (size == 0) return;
  pending_bytes_ += size;
  if (!empty()) {
    iovec& last = pieces_.back();
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == data) {
      last.iov_len += size;
      return;
    }
  }
  pieces_.push_back({const_cast<std::byte*>(data), size});
}

bool Http2Output::Add(const std::byte* data, size_t size, bool* failed) {
  if (size < kCopyBelow) {
    if (!Copy(data, size)) *failed = true;
    return false;
  }
  Refer(data, size);
  return true;
}

void Http2Output::Retire(GrpcMessagePtr message) {
  retired_.push_back({written_bytes_ + pending_bytes_, std::move(message)});
}

void Http2Output::Advance(size_t written) {
  pending_bytes_ -= written;
  written_bytes_ += written;
  while (written > 0) {
    iovec& piece = pieces_[first_];
    const size_t step = std::min(written, piece.iov_len);
    piece.iov_base = static_cast<char*>(piece.iov_base) + step;
    piece.iov_len -= step;
    written -= step;
    if (piece.iov_len == 0) ++first_;
  }
  while (first_retired_ < retired_.size() && retired_[first_retired_].at <= written_bytes_) {
    retired_[first_retired_++].message.reset();
  }
  if (first_retired_ == retired_.size()) {
    retired_.clear();
    first_retired_ = 0;
  }
  if (empty()) {
    pieces_.clear();
    first_ = 0;
    scratch_.clear();
    scratch_used_ = 0;
  }
}

void Http2Output::Clear() {
  pieces_.clear();
  first_ = 0;
  scratch_.clear();
  scratch_used_ = 0;
  pending_bytes_ = 0;
  retired_.clear();
  first_retired_ = 0;
}

}  // namespace nereid::net
