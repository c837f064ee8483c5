// SPDX-License-Identifier: Apache-2.0
// The messages of one stream that its call has not been given yet.
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

// Used by MessageDelivery, which has the rules. Confined to the holder of the connection.
struct CallInput {
  // Who has the stream's input.
  enum class Place : uint8_t {
    kHere,      // the holder of the connection
    kInLine,    // the same, and the next message or the half-close is to go to a worker
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

  // As new.
  void Recycle() {
    place = Place::kHere;
    is_heavy = is_half_closed = is_end_told = false;
    waiting.clear();
    next = 0;
    inflated.reset();
  }

  Place place = Place::kHere;
  bool is_heavy = false;        // events of its input come on a worker's thread
  bool is_half_closed = false;  // the client sends nothing more
  bool is_end_told = false;     // the call has heard that, or is going to hear it next
  std::vector<MessageAssembler::Message> waiting;
  size_t next = 0;  // of `waiting`: those before it are gone
  // What a worker made of a compressed message, while that is on its way back.
  std::optional<base::Result<net::BufferView>> inflated;
};

}  // namespace nereid::http2
