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
    bytes_waiting_ += size;
    return bytes_waiting_ > limits.most_waiting_bytes ? "its client reads too slowly" : nullptr;
  }
  const base::TimePoint deadline = std::chrono::steady_clock::now() + limits.longest_pause;
  bool was_in_vain = false;
  base::MutexLock lock(mutex_);
  while (!is_gone_ && rounds_ == rounds_seen && !was_in_vain) {
    was_in_vain = !changed_.WaitUntil(mutex_, deadline);
  }
  was_in_vain = was_in_vain && !is_gone_ && rounds_ == rounds_seen;
  return was_in_vain ? "its client does not read" : nullptr;
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
}

}  // namespace nereid::http
