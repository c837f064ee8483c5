// SPDX-License-Identifier: Apache-2.0
// The body of one request that did not come whole with its head: of known length, received straight
// into memory of its own, or in chunks, collected in memory that grows. What is larger than the
// limit is cut, and the rest is thrown away as far as that is worth the while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "http1/http_head.h"
#include "http1/http_head_parser.h"
#include "http1/http_server.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class BodyReceiver final : public HttpChunkSink {
 public:
  // Fills in the body of `request`, which outlives it.
  BodyReceiver(HttpRequest& request, uint64_t max_discard_bytes)
      : request_(request), max_discard_bytes_(max_discard_bytes) {}

  // A request of any kind begins, with no body so far.
  void Begin();
  // Its body is to be received like this.
  void SetPlan(const HttpBodyPlan& plan);
  const HttpBodyPlan& plan() const { return plan_; }
  // The least size of a buffer for a body of `length` bytes, whose split is aligned in it.
  size_t BufferBytes(size_t length) const { return offset_ + length; }
  // Where the body lies in such a buffer.
  size_t offset() const { return offset_; }

  // Of known length.
  // The body has `length` bytes; request.body_buffer is where to, or empty. False when memory is
  // exhausted.
  bool Expect(uint64_t length);
  // Takes what belongs to the body from the front of `bytes`: how many.
  size_t Take(std::string_view bytes);
  bool is_whole() const { return got_ == wanted_ && discard_left_ == 0; }
  // Memory for the next read while it is not whole; empty when memory is exhausted.
  std::span<std::byte> Room();
  // `size` bytes were read into it.
  void Received(size_t size);
  // More follows than is worth reading: the connection ends with this request.
  bool leaves_rest() const { return leaves_rest_; }

  // In chunks.
  void OnChunkBytes(std::string_view bytes) override;
  // More came than is worth reading, or memory is exhausted.
  bool has_overflowed() const { return has_overflowed_; }

  // Bytes of the body that have come, also those thrown away.
  uint64_t arrived() const;
  // All of it has come: request.body is what there is of it.
  void Finish();
  // Gives memory back that only receiving needs.
  void Release() { discard_buffer_.Reset(); }

 private:
  HttpRequest& request_;
  const uint64_t max_discard_bytes_;
  HttpBodyPlan plan_;
  size_t offset_ = 0;
  size_t wanted_ = 0;  // of a known length
  size_t got_ = 0;
  uint64_t discard_left_ = 0;
  base::BufferRef discard_buffer_;
  bool leaves_rest_ = false;
  bool has_overflowed_ = false;
};

}  // namespace nereid::http1
