// SPDX-License-Identifier: Apache-2.0
// What we ask of the process's allocator beyond memory.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/periodic_thread.h"

namespace nereid::base {

// Gives memory that nobody uses back to the system at once.
void ReturnFreeMemory();

// Tells when the time of day was set: it and the monotonic clock are no longer as far apart as
// before.
class ClockSteps {
 public:
  // Returns by how much the time of day was moved since the last call, if by more than a second.
  // Both times are readings of the same moment.
  std::optional<nanoseconds> Look(nanoseconds time_of_day, nanoseconds monotonic);

 private:
  std::optional<nanoseconds> distance_;
};

// Keeps free memory going back to the system by itself. jemalloc's threads, which give it back,
// sleep until a time of day. If that is set back meanwhile, they would sleep for as much longer;
// they are started anew.
class AllocatorUpkeep {
 public:
  AllocatorUpkeep();

 private:
  void Look();

  ClockSteps steps_;
  PeriodicThread thread_;
};

}  // namespace nereid::base
