// SPDX-License-Identifier: Apache-2.0
// An epoll for the sockets of one thread, with a timer.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace nereid::loadgen {

// `user` identifies a socket to its owner. A socket is forgotten when it is closed. Confined to one
// thread.
class Poller {
 public:
  Poller();

  void Add(int fd, void* user);
  // Sets whether to wake up when the socket is writable as well as when it is readable.
  void WantWrite(int fd, void* user, bool wanted);
  // Ends a wait at this time. More exact than the time limit of Wait, which the kernel lets run
  // over.
  void WakeAt(base::TimePoint time);

  // Calls `ready(user, events)` for each socket with events. Waits without a limit if `timeout_ms`
  // is -1.
  template <typename Ready>
  void Wait(int timeout_ms, Ready ready) {
    epoll_event events[256];
    const int count = epoll_wait(epoll_.get(), events, 256, timeout_ms);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == this) {
        TimerExpired();
      } else {
        ready(events[i].data.ptr, events[i].events);
      }
    }
  }

 private:
  void TimerExpired();

  base::UniqueFd epoll_;
  base::UniqueFd timer_;  // made when it is first needed
  std::optional<base::TimePoint> wake_at_;
};

}  // namespace nereid::loadgen
