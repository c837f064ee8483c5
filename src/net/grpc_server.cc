// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_server.h"

#include "net/connection.h"
#include "net/grpc_connection.h"
#include "net/tls_handshake.h"

namespace nereid::net {

class GrpcServer::Core {
 public:
  Core(GrpcServerOptions options, ReactorPool& pool, GrpcHandler& handler)
      : options(std::move(options)), handler(handler), workers(pool.workers()), group(pool) {}

  const GrpcServerOptions options;
  GrpcHandler& handler;
  base::TaskPool& workers;
  std::unique_ptr<TlsContext> tls;  // null: plain
  TlsHandshake::Next after_handshake;
  ConnectionGroup group;
};

base::Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                            ReactorPool& pool,
                                                            GrpcHandler& handler) {
  std::unique_ptr<GrpcServer> server(
      new GrpcServer(std::make_unique<Core>(options, pool, handler)));
  Core& core = *server->core_;
  core.after_handshake = [&core](Reactor& reactor, base::UniqueFd socket,
                                 std::unique_ptr<TlsChannel> tls) {
    GrpcConnection::Start({core.options, core.handler, core.group, reactor, core.workers},
                          std::move(socket), std::move(tls));
  };
  if (options.tls.is_on()) {
    NEREID_ASSIGN_OR_RETURN(core.tls, TlsContext::Create(options.tls, "h2"));
  }
  NEREID_ASSIGN_OR_RETURN(
      server->listener_,
      Listener::Start(options.listener, pool, [&core](Reactor& reactor, base::UniqueFd socket) {
        if (core.tls == nullptr) return core.after_handshake(reactor, std::move(socket), nullptr);
        TlsHandshake::Start(reactor, core.group, std::move(socket), *core.tls,
                            core.after_handshake);
      }));
  return server;
}

GrpcServer::GrpcServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}

GrpcServer::~GrpcServer() {
  if (listener_ != nullptr) listener_->Stop();
  core_->group.Shutdown();
}

uint16_t GrpcServer::port() const { return listener_->port(); }

size_t GrpcServer::connections() const { return core_->group.count(); }

void GrpcServer::StopAccepting() { listener_->Stop(); }

bool GrpcServer::Drain(base::TimePoint deadline) {
  StopAccepting();
  core_->group.Drain();
  if (core_->group.WaitUntilEmpty(deadline)) return true;
  core_->group.CloseAll();
  return false;
}

}  // namespace nereid::net
