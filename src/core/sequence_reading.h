// SPDX-License-Identifier: Apache-2.0
// What the sequence batcher of a model holds at a moment, for people who look at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nereid::core {

// One sequence. A value type.
struct SequenceReading {
  std::string id;        // the correlation id
  size_t instance = 0;   // instance and position say which slot; 0 in the backlog
  size_t position = 0;   // among the slots of the instance
  size_t waiting = 0;    // requests that have not been executed
  uint64_t idle_ns = 0;  // for how long it has had no request; 0 while it has one
  bool is_executing = false;
  bool is_closed = false;  // no request can join it any more
};

// The sequences of one model. A value type.
struct SequencesReading {
  bool is_oldest = false;  // the strategy: Oldest, or Direct
  size_t slots_per_instance = 0;
  size_t used_slots = 0;
  size_t free_slots = 0;
  uint64_t idle_limit_ns = 0;  // after which a sequence is closed
  size_t backlog_sequences = 0;
  size_t backlog_requests = 0;
  // By slot, and in the order in which they get one. Each has as many as the reader asked for.
  std::vector<SequenceReading> running;
  std::vector<SequenceReading> backlog;
};

}  // namespace nereid::core
