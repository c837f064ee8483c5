// SPDX-License-Identifier: Apache-2.0
// A client for fuzzers of whole servers: it sends any bytes and waits until the server is done. It
// uses a Unix socket, because a port stays taken for a minute after its connection, and a fuzzer
// makes more connections than a machine has ports.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/unique_fd.h"

namespace nereid::fuzz {

// Returns the path of this process's socket.
inline std::string SocketPath() {
  const std::string name = "nereid-fuzz-" + std::to_string(::getpid());
  return (std::filesystem::temp_directory_path() / name).string();
}

// Waits until there is something to receive, and returns whether it came in time. libFuzzer
// interrupts it: it looks at its clock in a signal handler, every few seconds.
inline bool WaitForReply(int socket) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wait{socket, POLLIN, 0};
    const int count = ::poll(&wait, 1, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (count < 0) NEREID_CHECK(errno == EINTR);
  }
}

// Sends the bytes to the server on SocketPath, says that nothing more will come, and returns what
// the server sent until it closed the connection. The process ends if it does not do so in time.
inline std::string Exchange(std::string_view bytes) {
  const base::UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static const std::string path = SocketPath();
  NEREID_CHECK(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
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
    NEREID_CHECK(WaitForReply(client.get()));
    const ssize_t got = ::recv(client.get(), reply, sizeof reply, 0);
    if (got <= 0) return all;
    all.append(reply, static_cast<size_t>(got));
  }
}

}  // namespace nereid::fuzz
