// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_message.h"

#include <algorithm>
#include <cstring>

#include "base/object_pool.h"

namespace nereid::http2 {
namespace {

constexpr size_t kBlockBytes = 16384;

}  // namespace

void GrpcMessageDeleter::operator()(GrpcMessage* message) const {
  base::ObjectPool<GrpcMessage>::Give(message);
}

GrpcMessagePtr GrpcMessage::Create() {
  return GrpcMessagePtr(base::ObjectPool<GrpcMessage>::Take());
}

GrpcMessage::Segment* GrpcMessage::last_segment() {
  if (!more_segments_.empty()) return &more_segments_.back();
  return inline_count_ > 0 ? &inline_segments_[inline_count_ - 1] : nullptr;
}

void GrpcMessage::AddSegment(const std::byte* data, size_t size) {
  size_ += size;
  Segment* const last = last_segment();
  if (last != nullptr && last->data + last->size == data) {
    last->size += size;
    return;
  }
  if (inline_count_ < kInlineSegments) {
    inline_segments_[inline_count_++] = {data, size};
  } else {
    more_segments_.push_back({data, size});
  }
}

std::byte* GrpcMessage::Extend(size_t size) {
  if (static_cast<size_t>(end_ - next_) < size) {
    base::BufferRef block = base::AcquireBuffer(std::max(size, kBlockBytes));
    if (!block) return nullptr;
    next_ = block.data();
    end_ = next_ + block.capacity();
    owners_.push_back(std::move(block));
  }
  std::byte* const place = next_;
  next_ += size;
  AddSegment(place, size);
  return place;
}

void GrpcMessage::Shorten(size_t size) {
  next_ -= size;
  size_ -= size;
  last_segment()->size -= size;
}

bool GrpcMessage::Append(std::string_view bytes) {
  std::byte* const place = Extend(bytes.size());
  if (place == nullptr) return false;
  // An empty view may have a null pointer, which memcpy does not allow.
  if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
  return true;
}

void GrpcMessage::Refer(const std::byte* data, size_t size, base::BufferRef owner) {
  if (size > 0) AddSegment(data, size);
  if (owner) owners_.push_back(std::move(owner));
}

void GrpcMessage::Clear() {
  if (keep_release_ != nullptr) {
    void (*const release)(void*) = keep_release_;
    keep_release_ = nullptr;
    release(keep_context_);
  }
  size_ = 0;
  inline_count_ = 0;
  more_segments_.clear();
  owners_.clear();
  next_ = own_.data();
  end_ = own_.data() + own_.size();
}

void GrpcMessage::Recycle() {
  Clear();
  order.Clear();
}

void GrpcOrder::Clear() {
  kinds = 0;
  is_compressed = false;
  status_code = 0;
  credit = 0;
  status_text.clear();
  trailers.reset();
  stream = nullptr;
}

}  // namespace nereid::http2
