// SPDX-License-Identifier: Apache-2.0
// Reads HTTP/1.1 replies incrementally, without keeping bytes that are not needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::loadgen {

// Reads one reply after the other. Confined to one thread.
class HttpReplyReader {
 public:
  // Begins the next reply. The body of a reply with another status than 200 is kept in any case, up
  // to 4 KiB.
  void Reset(bool keep_body);

  // Takes received bytes. Returns the number of server-sent events that began in them (0 for other
  // replies), or what is wrong with the reply, such as bytes behind its end.
  base::Result<uint64_t> Feed(std::string_view received);

  bool has_begun() const { return state_ != State::kHead || !line_.empty(); }
  bool is_complete() const { return state_ == State::kDone; }
  // The following are known once the head has arrived.
  int status() const { return status_; }
  bool is_events() const { return is_events_; }
  // Whether the server closes the connection behind this reply.
  bool closes() const { return closes_; }
  size_t body_size() const { return body_size_; }
  const std::string& body() const { return body_; }

 private:
  enum class State { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailers, kDone };

  base::Result<std::string_view> ReadHead(std::string_view received);
  base::Status ParseHead(std::string_view head);
  base::Result<std::string_view> ReadLine(std::string_view received);
  base::Status EndLine();
  base::Status TakePart(std::string_view part, uint64_t& events);
  void TakeBody(std::string_view part);
  uint64_t CountEvents(std::string_view part);

  State state_ = State::kHead;
  bool keep_body_ = false;
  int status_ = 0;
  bool is_events_ = false;
  bool closes_ = false;
  std::string line_;  // the incomplete head, size of a chunk, or line behind the last chunk
  size_t left_ = 0;   // bytes left of the body, or of the chunk
  size_t body_size_ = 0;
  size_t matched_ = 0;  // matched bytes of the text that begins an event
  std::string body_;
};

}  // namespace nereid::loadgen
