// SPDX-License-Identifier: Apache-2.0
// The TLS handshake on a socket that was just accepted, before its connection exists. For this
// module's own files.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "net/connection.h"
#include "net/listener.h"
#include "net/tls_channel.h"

namespace nereid::net {

// Confined to its reactor. Deletes itself once the handshake is done or has failed.
class TlsHandshake final : public Connection {
 public:
  // Starts the actual connection, on the same reactor.
  using Next = std::function<void(Reactor&, Accepted, std::unique_ptr<TlsChannel>)>;

  // Starts a handshake, on the reactor. `context` and `next` outlive the group's connections. A
  // client that is too slow or does not speak TLS is dropped.
  static void Start(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
                    TlsContext& context, const Next& next);

 private:
  TlsHandshake(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
               std::unique_ptr<TlsChannel> channel, TlsContext& context, const Next& next);

  void Step();
  void OnReadable() override { Step(); }
  void OnWritable() override { Step(); }
  void OnDrain() override { Close(); }
  void OnSweep(uint64_t now_ms) override;

  std::unique_ptr<TlsChannel> channel_;
  TlsContext& context_;
  const Next& next_;
  const uint64_t since_ms_;
};

}  // namespace nereid::net
