// SPDX-License-Identifier: Apache-2.0
// Accepts connections, over TCP or on a Unix socket, on the pool's first reactor and passes each
// socket to the reactor that has the fewest. The AcceptHandler implements the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/status.h"
#include "base/unique_function.h"
#include "net/connection_budget.h"
#include "net/reactor.h"

namespace nereid::net {

// The address to listen on, and its permissions.
struct ListenerOptions {
  // Numeric IPv4 or IPv6 (also with "ipv4:" or "ipv6:" before it), or "unix:<path>".
  std::string address = "0.0.0.0";
  uint16_t port = 0;  // 0: any free port, see Listener::port; ignored for a path
  // Lets several processes listen on the port (Triton's --reuse-http-port and --reuse-grpc-port).
  bool reuse_port = false;
  // The permissions of the file of a Unix socket: who may connect.
  mode_t unix_socket_mode = 0660;
  // Counts the connections, together with those of other listeners; null: no limit. Outlives the
  // listener and its connections.
  ConnectionBudget* budget = nullptr;
};

// Returns the path of a "unix:<path>" or "unix://<path>" address; empty for others.
std::string_view UnixSocketPath(std::string_view address);

// Returns "0.0.0.0:8000", or the address itself if it is a path.
std::string DescribeAddress(std::string_view address, uint16_t port);

// Thread-safe.
class Listener {
 public:
  // Called on the reactor that will own the connection. The socket is non-blocking and has
  // TCP_NODELAY.
  using AcceptHandler = base::UniqueFunction<void(Reactor&, Accepted)>;

  // Unavailable if the port is taken or the address is not ours, in Triton's words ("Socket
  // '0.0.0.0:8000' already in use "). The file of a Unix socket is replaced if no process listens
  // on it any more, and only if it is a socket; it is removed at the end. `pool` outlives the
  // listener. `on_accept` may run on several reactors at once.
  static base::Result<std::unique_ptr<Listener>> Start(const ListenerOptions& options,
                                                       ReactorPool& pool, AcceptHandler on_accept);
  // Like Stop. Must not run on a reactor.
  ~Listener();

  // Returns the actual port; 0 for a path.
  uint16_t port() const;
  // Accepts the connections that wait and closes the listening socket; returns when no further
  // on_accept will start. Not from a reactor.
  void Stop();

 private:
  struct State;
  explicit Listener(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with the accept operation and the hand-overs in flight
};

}  // namespace nereid::net
