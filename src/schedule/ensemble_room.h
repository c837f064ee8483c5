// SPDX-License-Identifier: Apache-2.0
// Blocks a decoupled model whose responses come faster than the next steps take them. Only in
// ensembles that limit their steps (max_inflight_requests).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

  // Prepares for a request of an ensemble with so many steps.
  void Reset(size_t step_count);

  // A response of `producer` that is not its last one has arrived (NoteResponse) or has been
  // handled (NoteHandled).
  void NoteResponse(Producer& producer);
  void NoteHandled(Producer& producer);
  // A call of `step` begins to wait for its place in a StepLimiter (NoteHeld), or has it or is
  // abandoned (NotePlaced).
  void NoteHeld(uint32_t step);
  void NotePlaced(uint32_t step);
  // Nothing more is started: no call waits for a place any longer.
  void NoteFailed();

  // Whether Wait would return at once, unless the producer's request has been cancelled.
  bool HasRoom(const Producer& producer, std::span<const uint32_t> behind);
  // Waits until the responses of `producer` have been handled, and until no call of the steps
  // `behind` it waits for a place unless the request has failed or the producer's own, `request`,
  // has been cancelled. Returns false at `deadline`. Calls of other steps do not count: those of
  // the producer's own step may wait for a place that the producer gives up only when it goes on.
  bool Wait(const Producer& producer, std::span<const uint32_t> behind,
            const core::Request& request, base::TimePoint deadline);

 private:
  bool HasHeld(std::span<const uint32_t> steps) const NEREID_REQUIRES(mutex_);

  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<uint32_t> held_ NEREID_GUARDED_BY(mutex_);  // by step
  bool has_failed_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::schedule
