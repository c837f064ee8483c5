// SPDX-License-Identifier: Apache-2.0
// A client for fuzzers of whole servers: it sends any bytes and waits until the server is done.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/unique_fd.h"

namespace nereid::fuzz {

// Gives the socket one of a million addresses of this machine, another each time: a port stays
// taken for a minute after its connection, and a fuzzer makes more connections than an address has
// ports.
inline void BindToNextAddress(int socket) {
  static uint32_t next = static_cast<uint32_t>(::getpid()) * 4096;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f100000 + next++ % 0x100000);
  const int on = 1;
  NEREID_CHECK(::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0);
  NEREID_CHECK(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

// Sends the bytes to that port of this machine, says that nothing more will come, and returns what
// the server sent until it closed the connection. The process ends if it does not do so in time.
inline std::string Exchange(uint16_t port, std::string_view bytes) {
  constexpr int kPatienceMs = 20'000;
  const base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BindToNextAddress(client.get());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  NEREID_CHECK(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // the server has closed the connection
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  ::shutdown(client.get(), SHUT_WR);
  std::string all;
  char reply[16384];
  for (;;) {
    pollfd wait{client.get(), POLLIN, 0};
    NEREID_CHECK(::poll(&wait, 1, kPatienceMs) == 1);
    const ssize_t got = ::recv(client.get(), reply, sizeof reply, 0);
    if (got <= 0) return all;
    all.append(reply, static_cast<size_t>(got));
  }
}

}  // namespace nereid::fuzz
