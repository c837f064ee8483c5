// SPDX-License-Identifier: Apache-2.0
// One outgoing gRPC message as a gather list: small parts are copied into the message's own bytes,
// large ones are referenced where they lie and kept alive until they have been written. Pooled:
// making and sending a message touches no allocator in steady state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/inbox.h"

namespace nereid::http2 {

class GrpcMessage;
struct GrpcMessageDeleter {
  void operator()(GrpcMessage* message) const;
};
using GrpcMessagePtr = std::unique_ptr<GrpcMessage, GrpcMessageDeleter>;

struct GrpcStream;

// What a stream is to do with the message that carries the order. Used by GrpcCall and the
// connection only.
struct GrpcOrder {
  enum Kind : uint8_t { kSend = 1, kFinish = 2, kReturn = 4, kCredit = 8, kAbort = 16 };

  void Clear();

  uint8_t kinds = 0;
  bool is_compressed = false;
  int status_code = 0;
  size_t credit = 0;
  std::string status_text;
  GrpcStream* stream = nullptr;  // counted
};

// Thread-compatible. Belongs to its writer until it is given to GrpcCall::Send.
class GrpcMessage : public base::Queueable {
 public:
  struct Segment {
    const std::byte* data;
    size_t size;
  };

  static GrpcMessagePtr Create();

  // `size` contiguous bytes at the end of the message for the caller to fill; null when memory is
  // exhausted. May be followed by Shorten.
  std::byte* Extend(size_t size);
  // Takes back the last `size` bytes of the latest Extend.
  void Shorten(size_t size);
  // Copies `bytes` to the end; false when memory is exhausted.
  bool Append(std::string_view bytes);
  // Refers to bytes that stay as they are for as long as `owner`, or what Keep was given, lives.
  void Refer(const std::byte* data, size_t size, base::BufferRef owner = {});
  // `release(context)` runs once the message has been written or dropped, on any thread. At most
  // one.
  void Keep(void* context, void (*release)(void*)) {
    keep_context_ = context;
    keep_release_ = release;
  }

  size_t size() const { return size_; }
  size_t segment_count() const { return inline_count_ + more_segments_.size(); }
  const Segment& segment(size_t i) const {
    return i < inline_count_ ? inline_segments_[i] : more_segments_[i - inline_count_];
  }
  // Empties the message, as if new, and lets go of everything it kept.
  void Clear();

  // For ObjectPool.
  void Recycle();

  // For the connection.
  GrpcOrder order;

 private:
  static constexpr size_t kOwnBytes = 640;
  static constexpr size_t kInlineSegments = 8;

  Segment* last_segment();
  void AddSegment(const std::byte* data, size_t size);

  size_t size_ = 0;
  size_t inline_count_ = 0;
  std::array<Segment, kInlineSegments> inline_segments_;
  std::vector<Segment> more_segments_;
  std::vector<base::BufferRef> owners_;
  void* keep_context_ = nullptr;
  void (*keep_release_)(void*) = nullptr;
  // Where the next copied byte goes: own_ first, then pooled buffers.
  std::byte* next_ = own_.data();
  std::byte* end_ = own_.data() + own_.size();

  std::array<std::byte, kOwnBytes> own_;
};

}  // namespace nereid::http2
