// SPDX-License-Identifier: Apache-2.0
// The messages of one stream that have not been passed to its call yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http2/message_assembler.h"
#include "net/compression.h"

namespace nereid::http2 {

// Used by MessageDelivery, which implements the rules. Confined to the holder of the connection.
struct CallInput {
  // The owner of the stream's input.
  enum class Place : uint8_t {
    kHere,      // the holder of the connection
    kInLine,    // the same, and the next message or the half-close waits for a worker
    kAtWorker,  // a worker, until it returns it
  };

  bool is_away() const { return place == Place::kAtWorker; }
  bool empty() const { return next == waiting.size(); }
  const MessageAssembler::Message& front() const { return waiting[next]; }
  void Push(MessageAssembler::Message message) { waiting.push_back(std::move(message)); }
  void PushFront(MessageAssembler::Message message) {
    if (next > 0) {
      waiting[--next] = std::move(message);
    } else {
      waiting.insert(waiting.begin(), std::move(message));
    }
  }
  MessageAssembler::Message Pop() {
    MessageAssembler::Message message = std::move(waiting[next++]);
    if (empty()) {
      waiting.clear();
      next = 0;
    }
    return message;
  }

  // Resets to a new object.
  void Recycle() {
    place = Place::kHere;
    is_heavy = is_half_closed = is_end_told = false;
    waiting.clear();
    next = 0;
    inflated.reset();
  }

  Place place = Place::kHere;
  bool is_heavy = false;        // events of its input come on a worker thread
  bool is_half_closed = false;  // the client sends no more
  bool is_end_told = false;     // the call knows this, or will be told next
  std::vector<MessageAssembler::Message> waiting;
  size_t next = 0;  // index in `waiting` of the first message that is left
  // The decompressed message of a worker, until it is taken back.
  std::optional<base::Result<net::BufferView>> inflated;
};

}  // namespace nereid::http2
