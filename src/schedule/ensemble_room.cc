// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_room.h"

namespace nereid::schedule {

void EnsembleRoom::Reset(size_t step_count) {
  base::MutexLock lock(mutex_);
  held_.assign(step_count, 0);
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

void EnsembleRoom::NoteHeld(uint32_t step) {
  base::MutexLock lock(mutex_);
  ++held_[step];
}

void EnsembleRoom::NotePlaced(uint32_t step) {
  base::MutexLock lock(mutex_);
  if (--held_[step] == 0) changed_.NotifyAll();
}

void EnsembleRoom::NoteFailed() {
  base::MutexLock lock(mutex_);
  has_failed_ = true;
  changed_.NotifyAll();
}

bool EnsembleRoom::HasHeld(std::span<const uint32_t> steps) const {
  for (const uint32_t step : steps) {
    if (held_[step] > 0) return true;
  }
  return false;
}

bool EnsembleRoom::HasRoom(const Producer& producer, std::span<const uint32_t> behind) {
  base::MutexLock lock(mutex_);
  return producer.unhandled == 0 && (has_failed_ || !HasHeld(behind));
}

bool EnsembleRoom::Wait(const Producer& producer, std::span<const uint32_t> behind,
                        const core::Request& request, base::TimePoint deadline) {
  base::MutexLock lock(mutex_);
  while (producer.unhandled > 0 || (HasHeld(behind) && !has_failed_ && !request.is_cancelled())) {
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
  return true;
}

}  // namespace nereid::schedule
