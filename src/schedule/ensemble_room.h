// SPDX-License-Identifier: Apache-2.0
// Holds a decoupled model back whose responses come faster than the steps behind it take them.
// Only in ensembles that limit their steps (max_inflight_requests).
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "core/request.h"

namespace nereid::schedule {

// Belongs to one request of an ensemble. Thread-safe.
class EnsembleRoom {
 public:
  // The part of one producer, that is of one call of a step. Guarded by the room.
  struct Producer {
    uint32_t unhandled = 0;  // of its responses
  };

  void Reset();

  // A response of `producer` that is not its last has come; has been handled.
  void NoteResponse(Producer& producer);
  void NoteHandled(Producer& producer);
  // A call begins to wait for its place in a StepLimiter; has it, or is given up.
  void NoteHeld();
  void NotePlaced();
  // Nothing more is started: nobody waits for places any longer.
  void NoteFailed();

  // Waits until the responses of `producer` have been handled, and until no call waits for a place
  // unless the request has failed or the producer's own, `request`, has been cancelled. False when
  // `deadline` passes first.
  bool Wait(const Producer& producer, const core::Request& request, base::TimePoint deadline);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  uint32_t held_ NEREID_GUARDED_BY(mutex_) = 0;
  bool has_failed_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::schedule
