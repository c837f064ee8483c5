// SPDX-License-Identifier: Apache-2.0
// The head of a reply as text: status line and header lines, in the order of Triton's server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http1/http_reply.h"

namespace nereid::http1 {

// What a connection knows of the reply to one of its requests, beside what the frontend says.
struct ReplyForm {
  // Further complete lines.
  std::string_view lines;
  // The request was a HEAD: the reply is one without its body.
  bool omits_body = false;
  // The connection closes after the reply.
  bool closes = false;
  // Of the request: 10 or 11.
  int version = 11;
};

// How a client sees the end of a stream.
enum class StreamFraming : uint8_t { kChunks, kUntilClose };

// Lives on the stack of the thread that replies, and on the heap only where it is unusually long.
class ReplyHead {
 public:
  // Of a whole reply, with a body of `body_bytes`.
  ReplyHead(const HttpReply& reply, const ReplyForm& form, uint64_t body_bytes);
  // Of a stream.
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
