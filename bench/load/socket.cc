// SPDX-License-Identifier: Apache-2.0
#include "load/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "load/options.h"

namespace nereid::bench {

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    Die("cannot connect to port " + std::to_string(port) + ": " + std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void Poller::Add(int fd, void* user) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = user}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Poller::WantWrite(int fd, void* user, bool wanted) {
  epoll_event event{.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data = {.ptr = user}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

}  // namespace nereid::bench
