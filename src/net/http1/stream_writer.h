// SPDX-License-Identifier: Apache-2.0
// The chunks of one streamed reply on their way to the socket, without a socket. The thread that
// writes chunks (the writer) and the reactor send by turns, each without the lock, so that neither
// waits for the other's system call. Each call says what the calling thread is to do next:
//
//   Step step = stream.Write(chunk, now_ns);
//   while (step.next == Next::kSend) step = stream.Sent(…send stream.sending()…);
//   if (step.next == Next::kPost) …post a task that takes the reactor's turn…
//
// The writer sends what it has written itself, unless the socket is full or chunks come faster than
// they can be sent one by one (net::Pace): then the reactor does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/mutex.h"
#include "http1/reply_head.h"
#include "net/pace.h"

namespace nereid::http1 {

// Thread-safe for one writer and the reactor.
class StreamWriter {
 public:
  // What a thread is to do.
  enum class Next : uint8_t {
    kNothing,  // all is sent, or the other one sees to the rest
    kSend,     // it has the turn: send sending(), then call Sent
    kPost,     // have the reactor take a turn soon (Cause::kTask)
    kWait,     // the reactor: take a turn when the socket has room (Cause::kRoom)
  };
  // What a call results in.
  struct Step {
    Next next = Next::kNothing;
    bool has_room = true;      // the writer may go on at once; false: when a turn has_resumed
    bool has_resumed = false;  // the reactor: a writer that was to pause may go on
    bool is_over = false;    // the stream has ended and all is sent: nobody else uses this any more
    bool is_broken = false;  // the client is gone, or the stream was cut short
  };
  // Why the reactor takes a turn.
  enum class Cause : uint8_t {
    kTask,  // the task runs that was to be posted
    kRoom,  // the socket has room
    kEnd,   // the writer has ended the stream
  };

  // `max_waiting` bytes may wait before the writer is to pause.
  StreamWriter(StreamFraming framing, bool omits_body, size_t max_waiting)
      : is_chunked_(framing == StreamFraming::kChunks),
        omits_body_(omits_body),
        max_waiting_(max_waiting) {}

  // The writer.
  // The head, and the first chunk if there is one. Once, before all others.
  Step Begin(std::string_view head, std::string_view chunk);
  // `now_ns` is 0 when the writer is on the reactor's thread.
  Step Write(std::string_view chunk, uint64_t now_ns);
  // The last chunk, if there is one.
  Step End(std::string_view chunk);
  // Ends the stream as it is. Without a last chunk the client knows that it is not whole.
  void Cut();

  // The thread that has the turn.
  std::string_view sending() const { return sending_; }
  // The socket took `sent` bytes of it; -1: it is broken.
  Step Sent(ssize_t sent);

  // The reactor.
  Step TakeTurn(Cause cause);

 private:
  // Sends of one turn, before others have theirs.
  static constexpr int kMaxSends = 16;
  // What the reactor is at.
  enum class Reactor : uint8_t {
    kIdle,
    kPosted,   // its task is in the queue, or is to be posted by who was told so
    kWaiting,  // for room in the socket
    kSending,  // it has the turn
  };

  void Append(std::string_view chunk) NEREID_REQUIRES(mutex_);
  // The writer's turn, if it may have one now.
  Step TakeWriterTurn() NEREID_REQUIRES(mutex_);
  // The next piece of a turn, or its end.
  Step Continue(bool is_stuck) NEREID_REQUIRES(mutex_);
  Step EndWriterTurn() NEREID_REQUIRES(mutex_);
  Step EndReactorTurn(bool is_stuck) NEREID_REQUIRES(mutex_);
  // What waits is the reactor's to send.
  Step LeaveToReactor() NEREID_REQUIRES(mutex_);
  // A step that says how far the stream is.
  Step MakeStep(Next next) const NEREID_REQUIRES(mutex_);

  const bool is_chunked_;
  const bool omits_body_;
  const size_t max_waiting_;
  std::string sending_;  // of the thread that has the turn
  base::Mutex mutex_;
  std::string waiting_ NEREID_GUARDED_BY(mutex_);
  net::Pace pace_ NEREID_GUARDED_BY(mutex_);
  Reactor reactor_ NEREID_GUARDED_BY(mutex_) = Reactor::kIdle;
  bool is_writer_sending_ NEREID_GUARDED_BY(mutex_) = false;
  int sends_ NEREID_GUARDED_BY(mutex_) = 0;           // of the turn
  bool is_full_ NEREID_GUARDED_BY(mutex_) = false;    // the writer was told to pause
  bool has_ended_ NEREID_GUARDED_BY(mutex_) = false;  // nothing follows waiting_
  bool is_broken_ NEREID_GUARDED_BY(mutex_) = false;  // chunks are thrown away
};

}  // namespace nereid::http1
