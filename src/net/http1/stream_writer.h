// SPDX-License-Identifier: Apache-2.0
// Sends the chunks of one streamed reply, without knowing the socket. The thread that writes chunks
// (the writer) and the reactor send by turns, each without the lock, so that neither waits for the
// other's system call. Each call returns what the calling thread has to do next:
//
//   Step step = stream.Write(chunk, now_ns);
//   while (step.next == Next::kSend) step = stream.Sent(…send stream.sending()…);
//   if (step.next == Next::kPost) …post a task that takes the reactor's turn…
//
// The writer sends what it has written itself, unless the socket is full or chunks come faster than
// they can be sent one by one (net::BurstDetector): then the reactor sends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/mutex.h"
#include "http1/reply_head.h"
#include "net/burst_detector.h"

namespace nereid::http1 {

// Thread-safe for one writer and the reactor.
class StreamWriter {
 public:
  // What a thread has to do.
  enum class Next : uint8_t {
    kNothing,  // all is sent, or the other thread sends the rest
    kSend,     // the thread has the turn: send sending(), then call Sent
    kPost,     // let the reactor take a turn soon (Cause::kTask)
    kWait,     // the reactor: take a turn when the socket has room (Cause::kRoom)
  };
  // What a call results in.
  struct Step {
    Next next = Next::kNothing;
    bool has_room = true;      // the writer may continue at once; false: once a turn has_resumed
    bool has_resumed = false;  // for the reactor: a paused writer may continue
    bool is_over = false;  // the stream has ended and all is sent: this object is not used any more
    bool is_broken = false;  // the client is gone, or the stream was truncated
  };
  // Why the reactor takes a turn.
  enum class Cause : uint8_t {
    kTask,  // the task that had to be posted runs
    kRoom,  // the socket has room
    kEnd,   // the writer has ended the stream
  };

  // `max_waiting` bytes may wait before the writer has to pause.
  StreamWriter(StreamFraming framing, bool omits_body, size_t max_waiting)
      : is_chunked_(framing == StreamFraming::kChunks),
        omits_body_(omits_body),
        max_waiting_(max_waiting) {}

  // For the writer. Sends the head, and the first chunk if there is one. Once, before everything
  // else.
  Step Begin(std::string_view head, std::string_view chunk);
  // `now_ns` is 0 if the writer is on the reactor's thread.
  Step Write(std::string_view chunk, uint64_t now_ns);
  // Sends the last chunk, if there is one.
  Step End(std::string_view chunk);
  // Truncates the stream. Without a last chunk the client knows that it is not whole.
  void Cut();

  // For the thread that has the turn.
  std::string_view sending() const { return sending_; }
  // Reports that the socket took `sent` bytes of it; -1: it is broken.
  Step Sent(ssize_t sent);

  // For the reactor.
  Step TakeTurn(Cause cause);
  // Returns how many bytes wait for the client.
  size_t waiting_bytes() {
    base::MutexLock lock(mutex_);
    return waiting_.size();
  }

 private:
  // The number of sends in one turn; then other connections have theirs.
  static constexpr int kMaxSends = 16;
  // The state of the reactor.
  enum class Reactor : uint8_t {
    kIdle,
    kPosted,   // its task is in the queue, or is about to be posted
    kWaiting,  // for room in the socket
    kSending,  // it has the turn
  };

  void Append(std::string_view chunk) NEREID_REQUIRES(mutex_);
  // Takes the writer's turn, if it may have one now.
  Step TakeWriterTurn() NEREID_REQUIRES(mutex_);
  // Takes the next piece of a turn, or ends it.
  Step Continue(bool is_stuck) NEREID_REQUIRES(mutex_);
  Step EndWriterTurn() NEREID_REQUIRES(mutex_);
  Step EndReactorTurn(bool is_stuck) NEREID_REQUIRES(mutex_);
  // Leaves what waits to the reactor.
  Step LeaveToReactor() NEREID_REQUIRES(mutex_);
  // Makes a step with the current state of the stream.
  Step MakeStep(Next next) const NEREID_REQUIRES(mutex_);

  const bool is_chunked_;
  const bool omits_body_;
  const size_t max_waiting_;
  std::string sending_;  // confined to the thread that has the turn
  base::Mutex mutex_;
  std::string waiting_ NEREID_GUARDED_BY(mutex_);
  net::BurstDetector bursts_ NEREID_GUARDED_BY(mutex_);
  Reactor reactor_ NEREID_GUARDED_BY(mutex_) = Reactor::kIdle;
  bool is_writer_sending_ NEREID_GUARDED_BY(mutex_) = false;
  int sends_ NEREID_GUARDED_BY(mutex_) = 0;           // in this turn
  bool is_full_ NEREID_GUARDED_BY(mutex_) = false;    // told to pause, and not yet to continue
  bool has_ended_ NEREID_GUARDED_BY(mutex_) = false;  // nothing follows waiting_
  bool is_broken_ NEREID_GUARDED_BY(mutex_) = false;  // chunks are discarded
};

}  // namespace nereid::http1
