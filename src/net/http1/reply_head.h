// SPDX-License-Identifier: Apache-2.0
// The head of a reply as text: status line and header lines, in the order of Triton's server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http1/http_reply.h"

namespace nereid::http1 {

// A connection's properties of the reply to one of its requests, beside those from the frontend.
struct ReplyForm {
  // Further complete lines.
  std::string_view lines;
  // Whether the request was a HEAD: the reply has no body.
  bool omits_body = false;
  // Whether the connection closes after the reply.
  bool closes = false;
  // The version of the request: 10 or 11.
  int version = 11;
};

// How a client detects the end of a stream.
enum class StreamFraming : uint8_t { kChunks, kUntilClose };

// Lives on the stack of the thread that replies; only an unusually long head is on the heap.
class ReplyHead {
 public:
  // Makes the head of a whole reply, with a body of `body_bytes`.
  ReplyHead(const HttpReply& reply, const ReplyForm& form, uint64_t body_bytes);
  // Makes the head of a stream.
  ReplyHead(const HttpReply& reply, const ReplyForm& form, StreamFraming framing);

  std::string_view text() const {
    return heap_.empty() ? std::string_view(inline_, size_) : std::string_view(heap_);
  }

 private:
  void Append(std::string_view text);
  void AppendNumber(uint64_t number);
  void AppendStart(const HttpReply& reply, const ReplyForm& form);
  void AppendEnd(const ReplyForm& form);

  char inline_[1024];
  size_t size_ = 0;
  std::string heap_;
};

}  // namespace nereid::http1
