// SPDX-License-Identifier: Apache-2.0
// What becomes of work whose thread cannot be started, because the process or its user has as many
// as it may have: the timers' thread tries again until there is one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/timers.h"

namespace nereid::schedule {

// Thread-safe.
class ThreadShortage {
 public:
  // `look` starts what is needed. It is called on the timers' thread, under no lock, and calls Note
  // if that fails again. `model` is for the log.
  ThreadShortage(base::Timers& timers, std::string model, std::function<void()> look);

  // Starts the timers' thread, unless it exists. Called when models are loaded: later, there might
  // be no thread for it either. Fails with UNAVAILABLE.
  base::Status Prepare();
  // Called when a thread could not be started. May be called under locks that `look` takes.
  void Note();

 private:
  void OnTimer();

  const std::string model_;
  const std::function<void()> look_;
  std::atomic<bool> is_noted_{false};
  uint64_t reported_at_ns_ = 0;  // confined to the timers' thread
  base::Timer timer_;            // destroyed first, because it uses the others
};

}  // namespace nereid::schedule
