// SPDX-License-Identifier: Apache-2.0
#include "http/stream_pacer.h"

#include "base/clock.h"
#include "base/no_wait.h"

namespace nereid::http {

uint64_t StreamPacer::rounds() {
  base::MutexLock lock(mutex_);
  return rounds_;
}

const char* StreamPacer::MakeRoom(uint64_t rounds_seen, size_t size, const StreamLimits& limits) {
  if (base::NoWaitScope::IsHere()) {
    {
      base::MutexLock lock(mutex_);
      full_round_ = rounds_seen;
    }
    // One chunk may be as large as it is.
    const bool is_too_much = bytes_waiting_.fetch_add(size) > limits.most_waiting_bytes;
    return is_too_much ? "its client reads too slowly" : nullptr;
  }
  const base::TimePoint deadline = std::chrono::steady_clock::now() + limits.longest_pause;
  bool was_in_vain = false;
  base::MutexLock lock(mutex_);
  while (!is_gone_ && rounds_ == rounds_seen && !was_in_vain) {
    was_in_vain = !changed_.WaitUntil(mutex_, deadline);
  }
  was_in_vain = was_in_vain && !is_gone_ && rounds_ == rounds_seen;
  if (!was_in_vain) bytes_waiting_ = 0;
  return was_in_vain ? "its client does not read" : nullptr;
}

bool StreamPacer::IsFull() {
  if (bytes_waiting_ == 0) return false;
  base::MutexLock lock(mutex_);
  return !is_gone_ && rounds_ == full_round_;
}

void StreamPacer::AwaitRoom(const StreamLimits& limits) {
  if (base::NoWaitScope::IsHere() || !IsFull()) return;
  const base::TimePoint deadline = std::chrono::steady_clock::now() + limits.longest_pause;
  base::MutexLock lock(mutex_);
  while (!is_gone_ && rounds_ == full_round_ && changed_.WaitUntil(mutex_, deadline)) {
  }
}

void StreamPacer::NoteGone() {
  base::MutexLock lock(mutex_);
  is_gone_ = true;
  changed_.NotifyAll();
}

void StreamPacer::NoteWritable() {
  base::MutexLock lock(mutex_);
  ++rounds_;
  changed_.NotifyAll();
}

void StreamPacer::Reset() {
  bytes_waiting_ = 0;
  base::MutexLock lock(mutex_);
  is_gone_ = false;
  rounds_ = 0;
  full_round_ = 0;
}

}  // namespace nereid::http
