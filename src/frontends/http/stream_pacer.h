// SPDX-License-Identifier: Apache-2.0
// Lets the sender of a streamed reply wait for a client that reads more slowly than it writes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"

namespace nereid::http {

// Limits for a stream whose client does not read.
struct StreamLimits {
  // How long a sender waits for a full buffer (http1::HttpServerOptions::max_stream_buffer) to be
  // taken by the client.
  std::chrono::milliseconds longest_pause{10'000};
  // How many bytes a sender that must not wait may leave in the buffer.
  size_t most_waiting_bytes = size_t{64} << 20;
};

// One thread at a time sends; the events (NoteGone, NoteWritable) may come from another.
class StreamPacer {
 public:
  // Called before a chunk is written: the result is for MakeRoom.
  uint64_t rounds();
  // Called after a chunk that found room.
  void NoteRoom() { bytes_waiting_ = 0; }
  // Called after a chunk of `size` bytes that filled the buffer. Waits until the client has taken
  // it or is gone; on a thread that must not wait (base/no_wait.h), counts. Returns why the stream
  // has to be given up, or null.
  const char* MakeRoom(uint64_t rounds_seen, size_t size, const StreamLimits& limits);

  // Whether the buffer is full of what threads that must not wait have written. Thread-safe.
  bool IsFull();
  // Waits while that is so, unless the thread must not wait, or the client takes too long.
  void AwaitRoom(const StreamLimits& limits);

  // The client has disconnected.
  void NoteGone();
  // The buffer, which was full, is empty.
  void NoteWritable();

  // Makes this as good as new.
  void Reset();

 private:
  std::atomic<size_t> bytes_waiting_{0};  // written since the buffer became full
  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_gone_ NEREID_GUARDED_BY(mutex_) = false;
  // How often the buffer ran empty after it had been full.
  uint64_t rounds_ NEREID_GUARDED_BY(mutex_) = 0;
  // `rounds_` before the last chunk that filled the buffer.
  uint64_t full_round_ NEREID_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::http
