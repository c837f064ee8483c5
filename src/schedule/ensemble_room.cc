// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_room.h"

namespace nereid::schedule {

void EnsembleRoom::Reset() {
  base::MutexLock lock(mutex_);
  held_ = 0;
  has_failed_ = false;
}

void EnsembleRoom::NoteResponse(Producer& producer) {
  base::MutexLock lock(mutex_);
  ++producer.unhandled;
}

void EnsembleRoom::NoteHandled(Producer& producer) {
  base::MutexLock lock(mutex_);
  if (--producer.unhandled == 0) changed_.NotifyAll();
}

void EnsembleRoom::NoteHeld() {
  base::MutexLock lock(mutex_);
  ++held_;
}

void EnsembleRoom::NotePlaced() {
  base::MutexLock lock(mutex_);
  if (--held_ == 0) changed_.NotifyAll();
}

void EnsembleRoom::NoteFailed() {
  base::MutexLock lock(mutex_);
  has_failed_ = true;
  changed_.NotifyAll();
}

bool EnsembleRoom::Wait(const Producer& producer, const core::Request& request,
                        base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (producer.unhandled > 0 || (held_ > 0 && !has_failed_ && !request.is_cancelled())) {
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
  return true;
}

}  // namespace nereid::schedule
