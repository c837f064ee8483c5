// SPDX-License-Identifier: Apache-2.0
// Sockets on 127.0.0.1 that do not block, and the epoll over them.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>

namespace nereid::bench {

// A connected socket that does not block and does not delay small packets. Dies when nobody
// listens.
int ConnectTo(int port);

// For the limits: a socket that listens on 127.0.0.1, and a connection from it, as ConnectTo gives
// one.
int ListenAt(int port);
int AcceptFrom(int listener);

// Lets the process have as many sockets as the system allows it.
void RaiseFileLimit();

// What `user` stands for may be a socket of any kind. Confined to one thread.
class Poller {
 public:
  Poller();
  void Add(int fd, void* user);
  // Whether to wake up when the socket can be written to as well as when it can be read.
  void WantWrite(int fd, void* user, bool wanted);

  // Calls `ready(user, events)` for each socket that something happened to.
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
