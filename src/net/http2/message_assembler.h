// SPDX-License-Identifier: Apache-2.0
// Bytes of DATA frames to the length-prefixed messages of one stream. A message has a buffer of its
// own, which is taken when the prefix has passed the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "http2/grpc_call.h"
#include "http2/grpc_wire.h"

namespace nereid::http2 {

// The messages of one connection of which something has come, but not all. Their sizes are bounded
// together, since a client is always given room to finish them.
struct IncompleteMessages {
  const size_t max_message_bytes;  // of each
  const size_t max_bytes;          // of all, unless there is only one
  size_t bytes = 0;                // as their prefixes say
  size_t count = 0;
};

// Confined to the holder of its connection.
class MessageAssembler {
 public:
  enum class State : uint8_t {
    kIncomplete,  // or nothing has come
    kComplete,    // TakeMessage is next
    kRefused,     // the call must end with `error`
  };
  struct Message {
    base::BufferRef buffer;  // keeps the bytes; empty when there are none
    std::string_view bytes;
    bool is_compressed = false;
  };

  // `connection` outlives the stream's messages.
  void Begin(IncompleteMessages& connection, bool may_be_compressed) {
    connection_ = &connection;
    may_be_compressed_ = may_be_compressed;
  }
  // Takes bytes up to the end of a message at most; returns how many. Bytes that lie in Room() are
  // taken there without a copy. Call it while state() is kIncomplete.
  size_t Take(const uint8_t* data, size_t size);
  State state() const { return state_; }
  // Call it when state() is kComplete; the next message may begin then.
  Message TakeMessage();
  // Why state() is kRefused.
  const GrpcError& error() const { return *error_; }
  // Gives up what has come of a message.
  void Drop();

  // Whether part of a message has come.
  bool is_within_message() const { return prefix_filled_ > 0; }
  // Where the rest of the message that is being received goes, in buffer(). Empty when it is not
  // known yet.
  std::span<std::byte> Room() const;
  const base::BufferRef& buffer() const { return buffer_; }
  // As the prefix says.
  size_t message_size() const { return size_; }
  // How much of the message has come since the last call. Nothing where that says little: there is
  // no message, it has begun since, or `is_fair` is false now or was at the last call.
  std::optional<size_t> Progress(bool is_fair);

  // As new.
  void Recycle();

 private:
  // The prefix is complete.
  void Start();
  void Refuse(GrpcStatus status, std::string text);

  IncompleteMessages* connection_ = nullptr;
  std::optional<GrpcError> error_;
  base::BufferRef buffer_;
  size_t offset_ = 0;  // where in buffer_ the message begins
  size_t size_ = 0;
  size_t filled_ = 0;
  size_t seen_ = 0;  // of filled_, at the last Progress
  uint8_t prefix_[kGrpcPrefixBytes];
  uint8_t prefix_filled_ = 0;
  State state_ = State::kIncomplete;
  bool may_be_compressed_ = false;
  bool is_progress_known_ = false;  // seen_ is of this message
};

}  // namespace nereid::http2
