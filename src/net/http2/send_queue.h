// SPDX-License-Identifier: Apache-2.0
// The messages that a stream has to send, and the progress of the first one. Large payloads are not
// copied: the output refers to them, and keeps their message until they have been written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/inbox.h"
#include "http2/grpc_message.h"
#include "http2/http2_output.h"
#include "http2/unsent_count.h"

namespace nereid::http2 {

// Confined to the holder of its connection. REQUIRES: Drop is called before destruction.
class SendQueue {
 public:
  // The outcome of Frame.
  struct Framed {
    bool is_ok = true;       // false: memory is exhausted, or the bytes are not there
    bool is_wanted = false;  // messages have left, and OnSent is wanted
  };

  bool empty() const { return first_ == nullptr; }
  // The size of everything that is not framed yet, with prefixes.
  size_t bytes() const { return bytes_; }
  // Whether part of a message has been framed, or promised to a frame: the peer needs what follows,
  // so that only a stream that is closed may drop it.
  bool is_begun() const { return prefix_sent_ > 0 || is_promised_; }

  void Push(GrpcMessagePtr message);
  // Promises the next bytes, at most `limit`, to a frame. Returns their number, which does not
  // change any more: Frame follows with it, unless the stream is closed before.
  size_t Promise(size_t limit) {
    is_promised_ = true;
    return limit < bytes_ ? limit : bytes_;
  }
  // Adds the next `length` bytes, at most bytes(), to `output`. Completed messages leave `unsent`.
  Framed Frame(size_t length, Http2Output& output, UnsentCount& unsent);
  // Drops everything that is not framed. `output` keeps the message that it refers to, if any.
  void Drop(Http2Output& output);

 private:
  // FramePrefix and FrameSegments return how much of `length` they used.
  size_t FramePrefix(size_t length, Http2Output& output, bool* is_ok);
  size_t FrameSegments(size_t length, Http2Output& output, bool* is_ok);
  // Removes the first message. `output` keeps it if it refers to it.
  void Pop(Http2Output& output);

  GrpcMessagePtr first_;            // null if there is none
  base::Queue<GrpcMessage> later_;  // the messages after it
  size_t bytes_ = 0;
  size_t segment_ = 0;         // of first_: the segments before this one are framed,
  size_t segment_offset_ = 0;  // and so many bytes of this one
  uint8_t prefix_sent_ = 0;    // how many bytes of its prefix are framed
  bool is_referred_ = false;   // the output refers to bytes of first_
  bool is_promised_ = false;   // a frame waits for its bytes
};

}  // namespace nereid::http2
