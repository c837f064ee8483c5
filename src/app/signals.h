// SPDX-License-Identifier: Apache-2.0
// The signals of the process, as events of the main thread. SIGINT and SIGTERM ask it to stop,
// SIGHUP to open its log file anew; SIGUSR1 and SIGUSR2 mean nothing, and end nothing. Writing to a
// connection that is gone, or beyond the limit on file sizes, is an error where it happens and no
// signal.
#pragma once

#include <chrono>

#include "base/unique_fd.h"

namespace nereid::app {

// Wait is for the main thread, Wake for any.
class Signals {
 public:
  enum class Event { kNothing, kStop, kReopenLog, kWoken };

  // Before any thread exists, so that all inherit it: no other thread is to take a signal.
  Signals();

  // The next event, or kNothing after `timeout`.
  Event Wait(std::chrono::seconds timeout);
  void Wake();
  // From here on a signal to stop ends the process at once: whoever sends a second one means it.
  static void LetStopEndTheProcess();

 private:
  Event ReadSignal();

  base::UniqueFd signals_;
  base::UniqueFd wake_;
};

}  // namespace nereid::app
