// SPDX-License-Identifier: Apache-2.0
#include "net/listener.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <latch>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/unix_address.h"
#include "net/unix_socket.h"

namespace nereid::net {
namespace {

// The number of connections accepted before other events are handled.
constexpr int kAcceptBurst = 64;
// The pause when the process is out of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

base::Result<Address> ParseAddress(const std::string& text, uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::string_view bare = text.starts_with("ipv4:") || text.starts_with("ipv6:")
                                    ? std::string_view(text).substr(5)
                                    : std::string_view(text);
  const std::string host(bare == "localhost" ? "127.0.0.1" : bare);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof *v4;
    return address;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof *v6;
    return address;
  }
  return base::InvalidArgumentError(
      fmt::format("'{}' is neither an IPv4 or IPv6 address nor unix:<path> to listen on", text));
}

base::Status BindError(const ListenerOptions& options, int error) {
  if (error == EADDRINUSE) {
    return base::UnavailableError(
        fmt::format("Socket '{}:{}' already in use ", options.address, options.port));
  }
  return base::UnavailableError(fmt::format("failed to listen on '{}:{}': {}", options.address,
                                            options.port, std::strerror(error)));
}

base::Result<base::UniqueFd> OpenPort(const ListenerOptions& options) {
  auto parsed = ParseAddress(options.address, options.port);
  if (!parsed.ok()) return parsed.status();
  const Address& address = *parsed;
  base::UniqueFd socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return BindError(options, errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (options.reuse_port) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) !=
          0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return BindError(options, errno);
  }
  return socket;
}

base::Result<uint16_t> BoundPort(int socket) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return base::InternalError(fmt::format("getsockname: {}", std::strerror(errno)));
  }
  if (address.storage.ss_family == AF_UNIX) return uint16_t{0};
  return ntohs(address.storage.ss_family == AF_INET
                   ? reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port
                   : reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
}

// The protocol is not known yet: an HTTP client gets the reason, a gRPC client only sees the end.
void Refuse(int socket, std::string_view reason) {
  const std::string body = fmt::format("{{\"error\":\"too many connections: {}\"}}", reason);
  const std::string reply = fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

std::string_view UnixSocketPath(std::string_view address) {
  if (!address.starts_with(base::kUnixPrefix)) return {};
  address.remove_prefix(5);
  if (address.starts_with("//")) address.remove_prefix(2);
  return address;
}

std::string DescribeAddress(std::string_view address, uint16_t port) {
  return address.starts_with(base::kUnixPrefix) ? std::string(address)
                                                : fmt::format("{}:{}", address, port);
}

// Confined to reactor 0, except for `stopping` and on_accept, which every reactor uses.
struct Listener::State final : Watched, std::enable_shared_from_this<Listener::State> {
  State(ReactorPool& pool, UnixSocket listening, uint16_t port, ConnectionBudget* budget,
        AcceptHandler on_accept)
      : pool(pool),
        retry(pool.reactor(0)),
        port(port),
        is_tcp(listening.file == nullptr),
        budget(budget),
        on_accept(std::move(on_accept)),
        listening(std::move(listening.socket)),
        file(std::move(listening.file)) {}

  void OnEvents(uint32_t) override { Accept(); }

  void Accept() {
    if (is_stopped || !AcceptSome(kAcceptBurst)) return;
    // There may be more connections, which no event will announce.
    pool.reactor(0).Post([self = shared_from_this()] { self->Accept(); });
  }

  // Returns whether `count` connections were accepted, so that there may be more.
  bool AcceptSome(int count) {
    for (int i = 0; i < count; ++i) {
      sockaddr_storage peer{};
      socklen_t peer_size = sizeof peer;
      base::UniqueFd socket(::accept4(listening.get(), reinterpret_cast<sockaddr*>(&peer),
                                      &peer_size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.valid()) {
        if (errno == ECONNABORTED || errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
        NEREID_LOG(kWarning, "cannot accept connections on port {}: {}", port,
                   std::strerror(errno));
        retry.Start(kAcceptPause, [this] { Accept(); });
        return false;
      }
      // The rest of the reserve stays free, so that there is a descriptor for the next connection.
      if (DescriptorsLeft(socket.get()) < ReservedDescriptors() / 2) {
        Refuse(socket.get(), "the process has no descriptors left");
        continue;
      }
      ConnectionBudget::Admission admission;
      if (budget != nullptr) admission = budget->Admit(peer);
      if (!admission.refusal.empty()) {
        Refuse(socket.get(), admission.refusal);
        continue;
      }
      const int on = 1;
      if (is_tcp) ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      HandOver({std::move(socket), std::move(admission.grant)});
    }
    return true;
  }

  void HandOver(Accepted accepted) {
    Reactor& reactor = pool.LeastLoaded();
    // Counted from here on, so that a burst is spread; the connection counts itself afterwards.
    reactor.AddConnection();
    auto run = [self = shared_from_this(), &reactor, accepted = std::move(accepted)]() mutable {
      self->on_accept(reactor, std::move(accepted));
      reactor.RemoveConnection();
    };
    if (reactor.IsCurrent()) return run();
    reactor.Post(std::move(run));
  }

  ReactorPool& pool;
  Timer retry;
  const uint16_t port;
  const bool is_tcp;
  ConnectionBudget* const budget;  // null: no limit
  AcceptHandler on_accept;
  base::UniqueFd listening;
  std::unique_ptr<UnixSocketFile> file;  // null for TCP
  std::atomic<bool> stopping{false};     // Stop was called
  bool is_stopped = false;
};

base::Result<std::unique_ptr<Listener>> Listener::Start(const ListenerOptions& options,
                                                        ReactorPool& pool,
                                                        AcceptHandler on_accept) {
  UnixSocket listening;
  if (options.address.starts_with(base::kUnixPrefix)) {
    NEREID_ASSIGN_OR_RETURN(
        listening,
        ListenOnUnixSocket(std::string(UnixSocketPath(options.address)), options.unix_socket_mode));
  } else {
    NEREID_ASSIGN_OR_RETURN(listening.socket, OpenPort(options));
  }
  NEREID_ASSIGN_OR_RETURN(const uint16_t port, BoundPort(listening.socket.get()));
  auto state = std::make_shared<State>(pool, std::move(listening), port, options.budget,
                                       std::move(on_accept));
  pool.reactor(0).Post(
      [state] { NEREID_CHECK(state->pool.reactor(0).Watch(state->listening.get(), *state)); });
  return std::unique_ptr<Listener>(new Listener(std::move(state)));
}

Listener::Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}

Listener::~Listener() { Stop(); }

uint16_t Listener::port() const { return state_->port; }

void Listener::Stop() {
  NEREID_CHECK(Reactor::Current() == nullptr);
  if (state_->stopping.exchange(true)) return;
  ReactorPool& pool = state_->pool;
  std::latch passed(static_cast<std::ptrdiff_t>(pool.size()));
  // Reactor 0 posts the barriers, so they follow every hand-over that it has made.
  pool.reactor(0).Post([this, &pool, &passed] {
    state_->file.reset();
    // Clients of connections that wait here believe that they are connected.
    state_->AcceptSome(SOMAXCONN);
    state_->is_stopped = true;
    pool.reactor(0).Unwatch(state_->listening.get());
    state_->listening = base::UniqueFd();
    state_->retry.Cancel();
    for (size_t i = 0; i < pool.size(); ++i) {
      pool.reactor(i).Post([&passed] { passed.count_down(); });
    }
  });
  passed.wait();
}

}  // namespace nereid::net
