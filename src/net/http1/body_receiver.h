// SPDX-License-Identifier: Apache-2.0
// Receives the body of one request that did not arrive whole with its head. A body of known length
// is received directly into its own memory; a chunked body is collected in memory that grows. A
// body larger than the limit is truncated, and the rest is discarded if it is not too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/budget.h"
#include "base/buffer.h"
#include "http1/http_head.h"
#include "http1/http_head_parser.h"
#include "http1/http_server.h"

namespace nereid::http1 {

// Confined to its connection's reactor.
class BodyReceiver final : public HttpChunkSink {
 public:
  // Sets the body of `request`. What the body takes is counted against `budget` if that is not
  // null. Both outlive this object.
  BodyReceiver(HttpRequest& request, uint64_t max_discard_bytes, base::Budget* budget = nullptr)
      : request_(request), max_discard_bytes_(max_discard_bytes), budget_(budget) {}

  // Begins a request of any kind, without a body so far.
  void Begin();
  // Sets how its body is to be received.
  void SetPlan(const HttpBodyPlan& plan);
  const HttpBodyPlan& plan() const { return plan_; }
  // The minimum size of a buffer for a body of `length` bytes whose split is aligned.
  size_t BufferBytes(size_t length) const { return offset_ + length; }
  // The offset of the body in such a buffer.
  size_t offset() const { return offset_; }

  // Leaves the whole body unread; 0 stands for a length that is not known.
  void Leave(uint64_t length);

  // For bodies of known length. Begins a body of `length` bytes in request.body_buffer, or in
  // memory of its own if that is empty. Returns false if memory is exhausted.
  bool Expect(uint64_t length);
  // Takes bytes of the body from the front of `bytes`; returns how many.
  size_t Take(std::string_view bytes);
  bool is_whole() const { return got_ == wanted_ && discard_left_ == 0; }
  // Returns memory for the next read while the body is not whole; empty if memory is exhausted.
  std::span<std::byte> Room();
  // Reports that `size` bytes were read into it.
  void Received(size_t size);
  // Whether more follows than is worth reading: the connection ends with this request.
  bool leaves_rest() const { return leaves_rest_; }

  // For chunked bodies.
  void OnChunkBytes(std::string_view bytes) override;
  // Whether more arrived than is worth reading, or memory is exhausted.
  bool has_overflowed() const { return has_overflowed_; }

  // Whether the budget has no room for what arrived, or never will have for a body of that length:
  // the request must be refused.
  bool is_over_budget() const { return is_over_budget_; }
  bool CanFit(uint64_t length) const { return budget_ == nullptr || length <= budget_->limit(); }

  // Returns how many bytes of the body have arrived, including discarded ones.
  uint64_t arrived() const;
  // Called when the whole body has arrived; sets request.body.
  void Finish();
  // Frees memory that is only needed for receiving.
  void Release() { discard_buffer_.Reset(); }

 private:
  // Counts the bytes that have arrived.
  void Charge();

  HttpRequest& request_;
  const uint64_t max_discard_bytes_;
  base::Budget* const budget_;
  HttpBodyPlan plan_;
  size_t offset_ = 0;
  size_t wanted_ = 0;  // of a body of known length
  size_t got_ = 0;
  uint64_t discard_left_ = 0;
  base::BufferRef discard_buffer_;
  bool leaves_rest_ = false;
  bool has_overflowed_ = false;
  bool is_over_budget_ = false;
};

}  // namespace nereid::http1
