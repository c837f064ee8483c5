// SPDX-License-Identifier: Apache-2.0
#include "http2/http2_output.h"

#include <algorithm>
#include <cstring>

namespace nereid::http2 {

bool Http2Output::CopyToNew(const void* data, size_t size) {
  base::BufferRef block = base::AcquireBuffer(std::max(size, kScratchBytes));
  if (!block) return false;
  place_ = block.data();
  room_ = block.capacity();
  scratch_.push_back(std::move(block));
  return Copy(data, size);
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
  if (empty()) return;  // the message is released now
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
    ForgetPlaces();
  }
}

void Http2Output::ForgetPlaces() {
  scratch_.clear();
  end_ = place_ = nullptr;
  room_ = 0;
}

void Http2Output::Clear() {
  pieces_.clear();
  first_ = 0;
  ForgetPlaces();
  pending_bytes_ = 0;
  retired_.clear();
  first_retired_ = 0;
}

}  // namespace nereid::http2
