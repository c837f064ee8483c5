// SPDX-License-Identifier: Apache-2.0
// The life of an instance's worker, as a table: the state that follows each state on each event.
// The table is the only way from one state to another, so a late event cannot revive what an
// earlier one has ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nereid::python {

enum class LifeState : uint8_t {
  kStarting,  // the next worker is starting, and requests wait for it
  kReady,     // a worker executes
  kFailing,   // the last start failed and will be retried after a pause; requests fail
  kStopping,  // the instance is ending: final
};
inline constexpr size_t kLifeStates = 4;

enum class LifeEvent : uint8_t {
  kStarted,      // a worker has initialized its model
  kStartFailed,  // a worker could not be started, or its model could not be initialized
  kDied,         // the worker that executed has ended, for any reason
  kStopped,      // the instance is no longer needed
};
inline constexpr size_t kLifeEvents = 4;

constexpr LifeState Next(LifeState state, LifeEvent event) {
  using enum LifeState;
  // One row for each state; columns are kStarted, kStartFailed, kDied, kStopped. A worker that dies
  // before it executes is a failed start. There is one start at a time and none while a worker
  // executes, so an event that cannot happen leaves the state as it is.
  constexpr std::array<std::array<LifeState, kLifeEvents>, kLifeStates> kTable = {{
      /* kStarting */ {kReady, kFailing, kStarting, kStopping},
      /* kReady    */ {kReady, kReady, kStarting, kStopping},
      /* kFailing  */ {kReady, kFailing, kFailing, kStopping},
      /* kStopping */ {kStopping, kStopping, kStopping, kStopping},
  }};
  return kTable[static_cast<size_t>(state)][static_cast<size_t>(event)];
}

}  // namespace nereid::python
