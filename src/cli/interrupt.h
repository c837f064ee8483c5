// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a request to stop, for commands that run until told otherwise or that have
// something to tidy up.
#pragma once

#include <stop_token>

#include "base/thread.h"
#include "base/unique_fd.h"
#include "cli/values.h"

namespace nereid::cli {

// Takes over SIGINT and SIGTERM while it exists. A second signal ends the process at once.
// Thread-safe. REQUIRES: no other thread exists yet when this is made, so that all threads inherit
// the signal mask.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Stops when a signal has arrived.
  std::stop_token token() const { return source_.get_token(); }
  bool is_requested() const { return source_.stop_requested(); }
  // Waits. Returns true as soon as a signal has arrived, false after `time`.
  bool WaitFor(Seconds time) const;

 private:
  void Listen();

  std::stop_source source_;
  base::UniqueFd signals_;
  base::UniqueFd end_;  // readable when the thread shall end
  base::Thread thread_;
};

}  // namespace nereid::cli
