// SPDX-License-Identifier: Apache-2.0
#include "http1/stream_writer.h"

#include <charconv>
#include <utility>

namespace nereid::http1 {

StreamWriter::Step StreamWriter::Begin(std::string_view head, std::string_view chunk) {
  base::MutexLock lock(mutex_);
  waiting_.append(head);
  Append(chunk);
  return TakeWriterTurn();
}

StreamWriter::Step StreamWriter::Write(std::string_view chunk, uint64_t now_ns) {
  base::MutexLock lock(mutex_);
  if (is_broken_) return MakeStep(Next::kNothing);
  Append(chunk);
  if (now_ns != 0 && bursts_.IsInBurst(now_ns)) return LeaveToReactor();
  return TakeWriterTurn();
}

StreamWriter::Step StreamWriter::End(std::string_view chunk) {
  base::MutexLock lock(mutex_);
  Append(chunk);
  if (is_chunked_ && !is_broken_ && !omits_body_) waiting_.append("0\r\n\r\n");
  has_ended_ = true;
  return TakeWriterTurn();
}

void StreamWriter::Cut() {
  base::MutexLock lock(mutex_);
  has_ended_ = is_broken_ = true;
  waiting_.clear();
}

StreamWriter::Step StreamWriter::Sent(ssize_t sent) {
  base::MutexLock lock(mutex_);
  if (sent < 0) is_broken_ = true;
  const bool is_stuck = sent >= 0 && static_cast<size_t>(sent) < sending_.size();
  if (is_stuck) waiting_.insert(0, sending_, static_cast<size_t>(sent));
  sending_.clear();
  ++sends_;
  return Continue(is_stuck);
}

StreamWriter::Step StreamWriter::TakeTurn(Cause cause) {
  base::MutexLock lock(mutex_);
  // While a task is queued, only that task takes the turn, so that it is never posted twice.
  if (cause != Cause::kTask && reactor_ == Reactor::kPosted) return MakeStep(Next::kNothing);
  if (cause == Cause::kRoom && reactor_ != Reactor::kWaiting) return MakeStep(Next::kNothing);
  if (is_writer_sending_) {  // the writer passes the rest to the reactor again
    reactor_ = Reactor::kIdle;
    return MakeStep(Next::kNothing);
  }
  reactor_ = Reactor::kSending;
  sends_ = 0;
  return Continue(false);
}

void StreamWriter::Append(std::string_view chunk) {
  if (is_broken_ || chunk.empty() || omits_body_) return;
  if (!is_chunked_) {
    waiting_.append(chunk);
    return;
  }
  char size[2 * sizeof(size_t)];
  const char* const end = std::to_chars(size, size + sizeof size, chunk.size(), 16).ptr;
  waiting_.append(size, static_cast<size_t>(end - size));
  waiting_.append("\r\n");
  waiting_.append(chunk);
  waiting_.append("\r\n");
}

StreamWriter::Step StreamWriter::TakeWriterTurn() {
  if (reactor_ == Reactor::kSending) return LeaveToReactor();  // it checks again before it stops
  is_writer_sending_ = true;
  sends_ = 0;
  return Continue(false);
}

StreamWriter::Step StreamWriter::Continue(bool is_stuck) {
  if (is_broken_) waiting_.clear();
  if (waiting_.empty() || is_stuck || sends_ == kMaxSends) {
    return is_writer_sending_ ? EndWriterTurn() : EndReactorTurn(is_stuck);
  }
  sending_.swap(waiting_);
  return MakeStep(Next::kSend);
}

StreamWriter::Step StreamWriter::EndWriterTurn() {
  is_writer_sending_ = false;
  // Only a turn of the reactor tells who pauses to continue, and the last one may have found the
  // writer sending.
  const bool is_awaited = is_full_ && !has_ended_;
  return waiting_.empty() && !is_awaited ? MakeStep(Next::kNothing) : LeaveToReactor();
}

StreamWriter::Step StreamWriter::EndReactorTurn(bool is_stuck) {
  if (waiting_.empty()) {
    reactor_ = Reactor::kIdle;
    Step step = MakeStep(Next::kNothing);
    step.has_resumed = std::exchange(is_full_, false);
    return step;
  }
  reactor_ = is_stuck ? Reactor::kWaiting : Reactor::kPosted;
  return MakeStep(is_stuck ? Next::kWait : Next::kPost);
}

StreamWriter::Step StreamWriter::LeaveToReactor() {
  const bool is_idle = reactor_ == Reactor::kIdle;
  if (is_idle) reactor_ = Reactor::kPosted;
  const bool is_full = waiting_.size() > max_waiting_;
  // A chunk that finds room does not tell a thread to continue that an earlier one made pause.
  is_full_ |= is_full;
  Step step = MakeStep(is_idle ? Next::kPost : Next::kNothing);
  step.has_room = !is_full;
  return step;
}

StreamWriter::Step StreamWriter::MakeStep(Next next) const {
  return {.next = next,
          .is_over = next != Next::kSend && has_ended_ && waiting_.empty() &&
                     reactor_ == Reactor::kIdle && !is_writer_sending_,
          .is_broken = is_broken_};
}

}  // namespace nereid::http1
