// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_server.h"

#include "http2/grpc_connection.h"
#include "net/connection.h"
#include "net/tls_handshake.h"

namespace nereid::http2 {

class GrpcServer::Core {
 public:
  Core(GrpcServerOptions options, net::ReactorPool& pool, GrpcHandler& handler)
      : options(std::move(options)), handler(handler), workers(pool.workers()), group(pool) {}

  const GrpcServerOptions options;
  GrpcHandler& handler;
  base::TaskPool& workers;
  std::unique_ptr<net::TlsContext> tls;  // null: plain
  net::TlsHandshake::Next after_handshake;
  net::ConnectionGroup group;
};

base::Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                            net::ReactorPool& pool,
                                                            GrpcHandler& handler) {
  std::unique_ptr<GrpcServer> server(
      new GrpcServer(std::make_unique<Core>(options, pool, handler)));
  Core& core = *server->core_;
  core.after_handshake = [&core](net::Reactor& reactor, net::Accepted accepted,
                                 std::unique_ptr<net::TlsChannel> tls) {
    GrpcConnection::Start({core.options, core.handler, core.group, reactor, core.workers},
                          std::move(accepted), std::move(tls));
  };
  if (options.tls.is_on()) {
    NEREID_ASSIGN_OR_RETURN(core.tls, net::TlsContext::Create(options.tls, "h2"));
  }
  NEREID_ASSIGN_OR_RETURN(
      server->listener_,
      net::Listener::Start(options.listener, pool,
                           [&core](net::Reactor& reactor, net::Accepted accepted) {
                             if (core.tls == nullptr)
                               return core.after_handshake(reactor, std::move(accepted), nullptr);
                             net::TlsHandshake::Start(reactor, core.group, std::move(accepted),
                                                      *core.tls, core.after_handshake);
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

}  // namespace nereid::http2
