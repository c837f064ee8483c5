// SPDX-License-Identifier: Apache-2.0
// The life of an instance's worker, as a table: in which state the instance is, and what each event
// makes of that. The table is the only way from one state to another, so an event that comes late
// cannot bring back what an earlier one has ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nereid::python {

enum class LifeState : uint8_t {
  kStarting,  // the next worker is on its way: requests wait for it
  kReady,     // a worker executes
  kFailing,   // the last start failed and is tried again after a pause: requests are told why
  kStopping,  // the instance ends: final
};
inline constexpr size_t kLifeStates = 4;

enum class LifeEvent : uint8_t {
  kStarted,      // a worker has initialized its model
  kStartFailed,  // a worker could not be started, or its model could not be initialized
  kDied,         // the worker that executed has ended, whatever ended it
  kStopped,      // the instance is wanted no more
};
inline constexpr size_t kLifeEvents = 4;

constexpr LifeState Next(LifeState state, LifeEvent event) {
  using enum LifeState;
  // One row for each state; columns are kStarted, kStartFailed, kDied, kStopped. A worker that dies
  // before it executes is a failed start. There is one start at a time and none while a worker
  // executes, so where neither can follow, the state stays as it is.
  constexpr std::array<std::array<LifeState, kLifeEvents>, kLifeStates> kTable = {{
      /* kStarting */ {kReady, kFailing, kStarting, kStopping},
      /* kReady    */ {kReady, kReady, kStarting, kStopping},
      /* kFailing  */ {kReady, kFailing, kFailing, kStopping},
      /* kStopping */ {kStopping, kStopping, kStopping, kStopping},
  }};
  return kTable[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

}  // namespace nereid::python
