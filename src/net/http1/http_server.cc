// SPDX-License-Identifier: Apache-2.0
#include "http1/http_server.h"

#include <algorithm>
#include <chrono>

#include "http1/http1_connection.h"

namespace nereid::http1 {

HttpBodyPlan HttpHandler::PlanBody(const HttpHead& /*head*/, size_t max_bytes) {
  return {.max_bytes = max_bytes};
}

base::BufferRef HttpHandler::BodyBuffer(const HttpHead& /*head*/, const HttpBodyPlan& /*plan*/,
                                        size_t /*size*/) {
  return {};
}

HttpErrorBody HttpHandler::ErrorBody(std::string_view text) {
  return {.content_type = "text/plain", .text = std::string(text)};
}

base::Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                            net::ReactorPool& pool,
                                                            HttpHandler& handler) {
  auto core = std::make_unique<Core>(options, pool, handler);
  Core& shared = *core;
  shared.after_handshake = [&shared](net::Reactor& reactor, net::Accepted accepted,
                                     std::unique_ptr<net::TlsChannel> tls) {
    (new Http1Connection(reactor, shared, std::move(accepted), std::move(tls)))->Start();
  };
  if (options.tls.is_on()) {
    NEREID_ASSIGN_OR_RETURN(shared.tls, net::TlsContext::Create(options.tls, "http/1.1"));
  }
  auto listener = net::Listener::Start(
      options.listener, pool, [&shared](net::Reactor& reactor, net::Accepted accepted) {
        if (shared.tls == nullptr)
          return shared.after_handshake(reactor, std::move(accepted), nullptr);
        net::TlsHandshake::Start(reactor, shared.group, std::move(accepted), *shared.tls,
                                 shared.after_handshake);
      });
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core), std::move(listener).value()));
}

HttpServer::HttpServer(std::unique_ptr<Core> core, std::unique_ptr<net::Listener> listener)
    : core_(std::move(core)), listener_(std::move(listener)) {}

HttpServer::~HttpServer() {
  listener_->Stop();
  core_->group.Shutdown();
}

uint16_t HttpServer::port() const { return listener_->port(); }

size_t HttpServer::connections() const { return core_->group.count(); }

void HttpServer::StopAccepting() { listener_->Stop(); }

bool HttpServer::Drain(base::TimePoint deadline) {
  listener_->Stop();
  core_->group.Drain();
  const auto idle_time = core_->options.drain_idle_time;
  if (core_->group.WaitUntilEmpty(
          std::min(deadline, std::chrono::steady_clock::now() + idle_time))) {
    return true;
  }
  core_->closes_idle.store(true);
  core_->group.Drain();
  if (core_->group.WaitUntilEmpty(deadline)) return true;
  core_->group.CloseAll();
  return false;
}

}  // namespace nereid::http1
