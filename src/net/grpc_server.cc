// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_server.h"

#include "net/connection.h"
#include "net/grpc_connection.h"

namespace nereid::net {

class GrpcServer::Core {
 public:
  Core(GrpcServerOptions options, ReactorPool& pool, GrpcHandler& handler)
      : options(std::move(options)), handler(handler), group(pool) {}

  const GrpcServerOptions options;
  GrpcHandler& handler;
  ConnectionGroup group;
};

base::Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(const GrpcServerOptions& options,
                                                            ReactorPool& pool,
                                                            GrpcHandler& handler) {
  std::unique_ptr<GrpcServer> server(
      new GrpcServer(std::make_unique<Core>(options, pool, handler)));
  Core& core = *server->core_;
  NEREID_ASSIGN_OR_RETURN(
      server->listener_,
      Listener::Start(options.listener, pool, [&core](Reactor& reactor, base::UniqueFd socket) {
        GrpcConnection::Start(core.options, core.handler, core.group, reactor, std::move(socket));
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
