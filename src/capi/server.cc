// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_Server*: a server's life, health and metadata. Texts: core/src/tritonserver.cc and
// server.cc of Triton.
#include "capi/server.h"

#include <memory>

#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/object_pool.h"
#include "capi/embedded_server.h"
#include "service/model_json.h"
#include "stores/stores.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::Status;

namespace {

std::vector<nereid::repository::StoreKind> AllStoresAnd(
    std::vector<nereid::repository::StoreKind> more) {
  for (nereid::repository::StoreKind& kind : nereid::stores::AllStores()) {
    more.push_back(std::move(kind));
  }
  return more;
}

}  // namespace

TRITONSERVER_Server::TRITONSERVER_Server(nereid::engine::EngineOptions options,
                                         std::chrono::seconds exit_timeout,
                                         std::vector<nereid::repository::StoreKind> more_stores)
    : engine(std::move(options), AllStoresAnd(std::move(more_stores)), *this),
      exit_timeout_(exit_timeout) {}

Status TRITONSERVER_Server::Stop() {
  return nereid::base::UnsupportedError("the server belongs to the process that runs it");
}

namespace nereid::capi {
namespace {

// The interval at which idle memory of the pools is freed.
constexpr uint64_t kTrimNs = 2'000'000'000;

}  // namespace

EmbeddedServer::EmbeddedServer(const TRITONSERVER_ServerOptions& options)
    : TRITONSERVER_Server(options.ToEngineOptions(), options.exit_timeout), trim_(timers_, [this] {
        base::TrimBuffers();
        base::TrimObjectPools();
        TrimSoon();
      }) {}

EmbeddedServer::~EmbeddedServer() = default;

void EmbeddedServer::TrimSoon() { trim_.ArmAt(base::NowNs() + kTrimNs); }

base::Status EmbeddedServer::Start() {
  NEREID_RETURN_IF_ERROR(engine.Start());
  TrimSoon();
  return base::OkStatus();
}

base::Status EmbeddedServer::Stop() {
  base::MutexLock lock(stop_mutex_);
  // A server with unfinished work must never be deleted, however often its stop is requested.
  if (std::exchange(is_stopped_, true)) return stop_status_;
  NEREID_LOG(kInfo, "Waiting for in-flight requests to complete.");
  engine.StartDraining();
  engine.LogInFlight(exit_timeout().count());
  const base::TimePoint deadline = std::chrono::steady_clock::now() + exit_timeout();
  engine.FinishSequences(deadline);
  const engine::Unfinished left = engine.Stop(deadline);
  for (const std::string& work : left.work) NEREID_LOG(kError, "{}", work);
  base::TrimBuffers();
  base::FlushLog();
  if (!left.empty())
    stop_status_ = base::InternalError("Exit timeout expired. Exiting immediately.");
  return stop_status_;
}

}  // namespace nereid::capi

using nereid::capi::EmbeddedServer;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerNew(TRITONSERVER_Server** server,
                                           TRITONSERVER_ServerOptions* options) {
  return RunApiCall([&]() -> Status {
    *server = nullptr;
    auto made = std::make_unique<EmbeddedServer>(*options);
    Status started = made->Start();
    if (!started.ok()) {
      made->SetExitTimeout(std::chrono::seconds(0));
      static_cast<void>(made->Stop());
      return started;
    }
    *server = made.release();
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerDelete(TRITONSERVER_Server* server) {
  return RunApiCall([&]() -> Status {
    if (server == nullptr) return {};
    NEREID_RETURN_IF_ERROR(server->Stop());
    delete server;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerStop(TRITONSERVER_Server* server) {
  return RunApiCall([&]() -> Status { return server == nullptr ? Status() : server->Stop(); });
}

TRITONSERVER_Error* TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server* server,
                                                      unsigned int timeout) {
  if (server != nullptr) server->SetExitTimeout(std::chrono::seconds(timeout));
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerIsLive(TRITONSERVER_Server* server, bool* live) {
  return RunApiCall([&]() -> Status {
    *live = false;
    if (server->engine.is_draining()) return nereid::base::UnavailableError("Server exiting");
    *live = server->engine.IsLive();
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerIsReady(TRITONSERVER_Server* server, bool* ready) {
  return RunApiCall([&]() -> Status {
    *ready = false;
    if (server->engine.is_draining()) return nereid::base::UnavailableError("Server exiting");
    *ready = server->engine.IsReady();
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerMetadata(TRITONSERVER_Server* server,
                                                TRITONSERVER_Message** server_metadata) {
  return RunApiCall([&]() -> Status {
    *server_metadata = nullptr;
    *server_metadata = new TRITONSERVER_Message{nereid::service::ToJson(server->engine.metadata())};
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
