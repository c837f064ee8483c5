// SPDX-License-Identifier: Apache-2.0
// Assembles the length-prefixed messages of one stream from the bytes of DATA frames. A message has
// its own buffer, which is allocated after the prefix has passed the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/budget.h"
#include "base/buffer.h"
#include "http2/grpc_call.h"
#include "http2/grpc_wire.h"

namespace nereid::http2 {

// The incomplete messages of one connection. The sum of their sizes is limited, because a client
// always gets the window to finish them.
struct IncompleteMessages {
  const size_t max_message_bytes;        // for each message
  const size_t max_bytes;                // for all messages, unless there is only one
  base::Budget* const budget = nullptr;  // of the server, for what has arrived; null: no limit
  size_t bytes = 0;                      // the sum of their declared sizes
  size_t count = 0;
};

// Confined to the holder of its connection.
class MessageAssembler {
 public:
  enum class State : uint8_t {
    kIncomplete,  // or nothing has arrived
    kComplete,    // TakeMessage must be called next
    kRefused,     // the call must end with `error`
  };
  struct Message {
    base::BufferRef buffer;  // keeps the bytes; empty if there are none
    std::string_view bytes;
    bool is_compressed = false;
  };

  // `connection` outlives the stream's messages.
  void Begin(IncompleteMessages& connection, bool may_be_compressed) {
    connection_ = &connection;
    may_be_compressed_ = may_be_compressed;
  }
  // Takes bytes up to the end of a message at most; returns how many. Bytes that already lie in
  // Room() are not copied. REQUIRES: state() is kIncomplete.
  size_t Take(const uint8_t* data, size_t size);
  State state() const { return state_; }
  // Takes the message, after which the next one may begin. REQUIRES: state() is kComplete.
  Message TakeMessage();
  // Why state() is kRefused.
  const GrpcError& error() const { return *error_; }
  // Drops the incomplete message.
  void Drop();

  // Whether part of a message has arrived.
  bool is_within_message() const { return prefix_filled_ > 0; }
  // Returns the place in buffer() for the rest of the current message. Empty if it is not known
  // yet.
  std::span<std::byte> Room() const;
  const base::BufferRef& buffer() const { return buffer_; }
  // The size in the prefix.
  size_t message_size() const { return size_; }
  // Returns how much of the message arrived since the last call. Returns nothing if that would be
  // misleading: there is no message, it has begun since, or `is_fair` is false now or was at the
  // last call.
  std::optional<size_t> Progress(bool is_fair);

  // Resets to a new object.
  void Recycle();

 private:
  // Called when the prefix is complete.
  void Start();
  void Refuse(GrpcStatus status, std::string text);
  // Counts the bytes that have arrived; refuses the message if the budget has no room for them.
  void Charge();

  IncompleteMessages* connection_ = nullptr;
  std::optional<GrpcError> error_;
  base::BufferRef buffer_;
  size_t offset_ = 0;  // where in buffer_ the message begins
  size_t size_ = 0;
  size_t filled_ = 0;
  size_t seen_ = 0;  // filled_ at the last Progress
  uint8_t prefix_[kGrpcPrefixBytes];
  uint8_t prefix_filled_ = 0;
  State state_ = State::kIncomplete;
  bool may_be_compressed_ = false;
  bool is_progress_known_ = false;  // seen_ is of this message
};

}  // namespace nereid::http2
