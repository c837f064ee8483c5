// SPDX-License-Identifier: Apache-2.0
// Blocks a decoupled model whose responses come faster than the next steps take them. Only in
// ensembles that limit their steps (max_inflight_requests).
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "core/request.h"

namespace nereid::schedule {

// Belongs to one request of an ensemble. Thread-safe.
class EnsembleRoom {
 public:
  // The state of one producer, which is one call of a step. Guarded by the room.
  struct Producer {
    uint32_t unhandled = 0;  // responses
  };

  void Reset();

  // A response of `producer` that is not its last one has arrived (NoteResponse) or has been
  // handled (NoteHandled).
  void NoteResponse(Producer& producer);
  void NoteHandled(Producer& producer);
  // A call begins to wait for its place in a StepLimiter (NoteHeld), or has it or is abandoned
  // (NotePlaced).
  void NoteHeld();
  void NotePlaced();
  // Nothing more is started: no call waits for a place any longer.
  void NoteFailed();

  // Waits until the responses of `producer` have been handled, and until no call waits for a place
  // unless the request has failed or the producer's own, `request`, has been cancelled. Returns
  // false at `deadline`.
  bool Wait(const Producer& producer, const core::Request& request, base::TimePoint deadline);

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  uint32_t held_ NEREID_GUARDED_BY(mutex_) = 0;
  bool has_failed_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::schedule
