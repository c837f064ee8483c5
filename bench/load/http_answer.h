// SPDX-License-Identifier: Apache-2.0
// Reads HTTP/1.1 replies incrementally, without keeping bytes that are not needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::bench {

// Reads one reply after the other. Ends the process for any status but 200. Confined to one thread.
class HttpAnswer {
 public:
  // Begins the next reply.
  void Reset(bool keep_body);

  // Takes received bytes, which must not extend beyond the reply's end. Returns the number of
  // server-sent events that became complete (0 for other replies).
  uint64_t Feed(std::string_view received);

  bool is_complete() const { return state_ == State::kDone; }
  bool is_events() const { return is_events_; }
  size_t body_size() const { return body_size_; }
  const std::string& body() const { return body_; }

 private:
  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kDone };

  std::string_view ReadHead(std::string_view received);
  void ParseHead(std::string_view head);
  std::string_view ReadChunkSize(std::string_view received);
  void TakeBody(std::string_view part);
  uint64_t CountEvents(std::string_view part);

  State state_ = State::kHead;
  bool keep_body_ = false;
  bool is_chunked_ = false;
  bool is_events_ = false;
  std::string line_;  // the incomplete head, or size of a chunk
  size_t left_ = 0;   // bytes left of the body, or of the chunk
  size_t body_size_ = 0;
  size_t matched_ = 0;  // matched bytes of the text that begins an event
  std::string body_;
};

}  // namespace nereid::bench
