// SPDX-License-Identifier: Apache-2.0
// Non-blocking sockets on 127.0.0.1, and an epoll for them.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>

namespace nereid::bench {

// Returns a connected, non-blocking socket that does not delay small packets. Ends the process if
// no server listens.
int ConnectTo(int port);

// For the lower limits: a listening socket on 127.0.0.1, and a connection from it, like that of
// ConnectTo.
int ListenAt(int port);
int AcceptFrom(int listener);

// Raises the process's limit of open files to the maximum that the system allows.
void RaiseFileLimit();

// An epoll; `user` identifies a socket to its owner. Confined to one thread.
class Poller {
 public:
  Poller();
  void Add(int fd, void* user);
  // Sets whether to wake up when the socket is writable as well as when it is readable.
  void WantWrite(int fd, void* user, bool wanted);

  // Calls `ready(user, events)` for each socket with events.
  template <typename Ready>
  void Wait(int timeout_ms, Ready ready) {
    epoll_event events[256];
    const int count = epoll_wait(epoll_, events, 256, timeout_ms);
    for (int i = 0; i < count; ++i) ready(events[i].data.ptr, events[i].events);
  }

 private:
  int epoll_;
};

}  // namespace nereid::bench
