// SPDX-License-Identifier: Apache-2.0
// One outgoing gRPC message as a gather list: small parts are copied into the message's own bytes,
// large ones are referenced and kept alive until they have been written. Pooled: making and sending
// a message allocates nothing in steady state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// Metadata at the end of a call: lower-case names, and values that are valid in HTTP fields. The
// value of a name that ends with "-bin" is base64.
using GrpcTrailers = std::vector<std::pair<std::string, std::string>>;

// What a stream has to do with the message that carries the order. Only for GrpcCall and the
// connection.
struct GrpcOrder {
  enum Kind : uint8_t { kSend = 1, kFinish = 2, kReturn = 4, kCredit = 8, kAbort = 16 };

  void Clear();

  uint8_t kinds = 0;
  bool is_compressed = false;
  int status_code = 0;
  size_t credit = 0;
  std::string status_text;
  std::unique_ptr<const GrpcTrailers> trailers;  // null: none, as nearly always
  GrpcStream* stream = nullptr;                  // holds a reference
};

// Thread-compatible. Belongs to its writer until it is passed to GrpcCall::Send.
class GrpcMessage : public base::Queueable {
 public:
  struct Segment {
    const std::byte* data;
    size_t size;
  };

  static GrpcMessagePtr Create();

  // Appends `size` contiguous bytes for the caller to fill; null if memory is exhausted. Shorten
  // may follow.
  std::byte* Extend(size_t size);
  // Removes the last `size` bytes of the latest Extend.
  void Shorten(size_t size);
  // Copies `bytes` to the end; returns false if memory is exhausted.
  bool Append(std::string_view bytes);
  // Refers to bytes that stay unchanged as long as `owner`, or the argument of Keep, lives.
  void Refer(const std::byte* data, size_t size, base::BufferRef owner = {});
  // Calls `release(context)` once the message has been written or dropped, on any thread. At most
  // once per message.
  void Keep(void* context, void (*release)(void*)) {
    keep_context_ = context;
    keep_release_ = release;
  }

  size_t size() const { return size_; }
  size_t segment_count() const { return inline_count_ + more_segments_.size(); }
  const Segment& segment(size_t i) const {
    return i < inline_count_ ? inline_segments_[i] : more_segments_[i - inline_count_];
  }
  // Empties the message and releases everything that it kept.
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
  // Left uninitialised: only bytes that were copied to it are sent.
  std::array<std::byte, kOwnBytes> own_;
  // The place for the next copied byte: first in own_, then in pooled buffers.
  std::byte* next_ = own_.data();
  std::byte* end_ = own_.data() + own_.size();
};

}  // namespace nereid::http2
