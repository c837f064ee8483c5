// SPDX-License-Identifier: Apache-2.0
#include "cli/ports.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace nereid::cli {
namespace {

constexpr int kMaxPort = 65'535;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

bool CanListen(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return true;
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  const base::UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return true;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_bound = ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  if (is_bound && ::listen(socket.get(), 1) == 0) return true;
  return errno != EADDRINUSE;
}

}  // namespace

base::Result<ChosenPorts> ChoosePorts(const std::vector<ServicePort>& services,
                                      const std::function<bool(uint16_t port)>& is_free) {
  // A port that one service has, or would have, is not offered to another.
  const auto is_reserved = [&](int port, const ServicePort* except) {
    return std::ranges::any_of(services, [&](const ServicePort& other) {
      return &other != except && port == other.chosen.value_or(other.usual);
    });
  };
  std::vector<int> given;
  const auto next_free = [&](int port) {
    for (++port; port <= kMaxPort; ++port) {
      const bool is_given = std::ranges::find(given, port) != given.end();
      if (!is_given && !is_reserved(port, nullptr) && is_free(static_cast<uint16_t>(port))) break;
    }
    return port > kMaxPort ? 0 : port;  // 0 leaves the choice to the system
  };
  ChosenPorts result;
  for (const ServicePort& service : services) {
    int port = service.chosen.value_or(service.usual);
    if (port < 0 || port > kMaxPort) {
      return base::InvalidArgumentError(fmt::format(
          "{} {}: expected a port from 1 to {}, or 0 for any", service.option, port, kMaxPort));
    }
    const bool is_shared = is_reserved(port, &service) && port != 0;
    const bool is_taken = port != 0 && !is_free(static_cast<uint16_t>(port));
    if (service.chosen && is_taken) {
      const int free = next_free(port);
      return base::UnavailableError(
          fmt::format("port {} is taken by another program; the next free one is {}: {} {}", port,
                      free, service.option, free));
    }
    if (!service.chosen && (is_taken || is_shared)) {
      const int free = next_free(port);
      if (is_taken) {
        result.notes.push_back(fmt::format("port {} is taken by another program: {} is on port {}",
                                           port, service.service, free));
      }
      port = free;
    }
    given.push_back(port);
    result.ports.push_back(static_cast<uint16_t>(port));
  }
  return result;
}

bool IsPortFree(const std::string& address, uint16_t port) {
  // "localhost" is often tried as ::1 first, so a program that listens there would get the requests
  // to this server.
  return CanListen(address, port) && CanListen("::1", port);
}

}  // namespace nereid::cli
