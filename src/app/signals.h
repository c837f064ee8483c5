// SPDX-License-Identifier: Apache-2.0
// The signals of the process, as events of the main thread. SIGINT and SIGTERM stop the server,
// SIGHUP reopens its log file; SIGUSR1 and SIGUSR2 have no effect. Writing to a closed connection,
// or beyond the limit on file sizes, fails with an error instead of a signal.
#pragma once

#include <chrono>

#include "base/unique_fd.h"

namespace nereid::app {

// Wait is called on the main thread, Wake on any thread.
class Signals {
 public:
  // The reasons for which Wait returns.
  enum class Event { kNothing, kStop, kReopenLog, kWoken };

  // REQUIRES: no other thread exists yet, so that all threads inherit the signal mask.
  Signals();

  // Returns the next event, or kNothing after `timeout`.
  Event Wait(std::chrono::seconds timeout);
  void Wake();
  // From now on a stop signal ends the process at once, because a second one is meant as an
  // emergency stop.
  static void LetStopEndTheProcess();

 private:
  Event ReadSignal();

  base::UniqueFd signals_;
  base::UniqueFd wake_;
};

}  // namespace nereid::app
