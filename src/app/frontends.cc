// SPDX-License-Identifier: Apache-2.0
#include "app/frontends.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "access/gate.h"
#include "app/explain_model.h"
#include "base/log.h"
#include "base/mutex.h"
#include "common/reactor_rounds.h"
#include "console/console_handler.h"
#include "console/recorder.h"
#include "core/budgets.h"
#include "engine/engine.h"
#include "grpc/frontend.h"
#include "http/admin_handler.h"
#include "http/api_handler.h"
#include "http/metrics_handler.h"
#include "http/origin.h"
#include "http1/http_server.h"
#include "net/connection_budget.h"
#include "net/reactor.h"
#include "openai/handler.h"

namespace nereid::app {
namespace {

http2::GrpcCompressionLevel ToNet(CompressionLevel level) {
  switch (level) {
    case CompressionLevel::kNone:
      return http2::GrpcCompressionLevel::kNone;
    case CompressionLevel::kLow:
      return http2::GrpcCompressionLevel::kLow;
    case CompressionLevel::kMedium:
      return http2::GrpcCompressionLevel::kMedium;
    case CompressionLevel::kHigh:
      return http2::GrpcCompressionLevel::kHigh;
  }
  return http2::GrpcCompressionLevel::kNone;
}

bool HasTls(const SslOptions& ssl) { return ssl.is_used || ssl.is_mutual; }

net::TlsOptions ToNet(const SslOptions& ssl, net::TlsReloads& reloads) {
  net::TlsOptions options;
  if (!HasTls(ssl)) return options;
  options.reloads = &reloads;
  options.certificate_file = ssl.server_cert;
  options.key_file = ssl.server_key;
  if (ssl.is_mutual) options.client_roots_file = ssl.root_cert;
  return options;
}

// Room for the JSON head before tensors of the largest permitted size.
constexpr size_t kMaxJsonHeadBytes = size_t{16} << 20;

constexpr std::string_view kControlIsElsewhere =
    "this server's control APIs are on its admin listener (--admin-address, --admin-port)";

std::optional<std::chrono::milliseconds> NothingIfZero(std::chrono::milliseconds time) {
  return time.count() == 0 ? std::nullopt : std::optional(time);
}

// Metrics are served whatever the other ports do.
struct MetricsConnections {
  base::Budget total{256};
  base::Budget of_address;
  net::ConnectionBudget budget{total, of_address};
};

// The console, on the listeners that have it.
struct ConsoleServers {
  explicit ConsoleServers(service::Service& service) : recorder(service) {}

  console::Recorder recorder;
  std::unique_ptr<console::ConsoleHandler> main, admin;  // null: the listener has none
};

// Returns "failed to start HTTP service: Unavailable - Socket ...", as Triton words it.
base::Status StartError(const char* service, const base::Status& status) {
  return {status.code(), fmt::format("failed to start {} service: {} - {}", service,
                                     base::StatusCodeName(status.code()), status.message())};
}

}  // namespace

// The parts in the order of construction; they are destroyed in reverse.
struct Frontends::Parts {
  Parts(const Options& options, engine::Engine& served)
      : engine(served),
        connections(served.budgets().connections, served.budgets().connections_per_address),
        reactors(static_cast<unsigned>(std::max(
                     {options.http.thread_count, options.grpc.thread_count,
                      options.cloud.sagemaker.thread_count, options.cloud.vertex_ai.thread_count})),
                 &served.watchdog()),
        rounds(reactors) {}

  engine::Engine& engine;
  std::unique_ptr<access::Gate> gate;  // null: everybody may do everything
  net::ConnectionBudget connections;
  MetricsConnections metrics_connections;
  net::TlsReloads tls_reloads;
  net::ReactorPool reactors;
  common::RoundExecutors rounds;
  std::unique_ptr<openai::Handler> openai;
  std::unique_ptr<ConsoleServers> console;  // null: there is no console
  std::unique_ptr<http::ApiHandler> http_handler;
  std::unique_ptr<http::ApiHandler> admin_api;
  std::unique_ptr<http::MetricsHandler> metrics_handler;
  std::unique_ptr<http::AdminHandler> admin_handler;
  std::unique_ptr<http1::HttpServer> http;
  std::unique_ptr<http1::HttpServer> admin;
  std::unique_ptr<http1::HttpServer> metrics;
  std::unique_ptr<CloudServers> cloud;
  std::unique_ptr<grpc::Frontend> grpc;
  std::unique_ptr<grpc::Frontend> admin_grpc;
};

Frontends::Frontends(const Options& options, engine::Engine& engine)
    : options_(options), parts_(std::make_unique<Parts>(options_, engine)) {}

// Servers wait for their exchanges, of which the console has streams without an end.
Frontends::~Frontends() {
  if (parts_->console != nullptr) parts_->console->recorder.Stop();
}

void Frontends::MakeConsole() {
  const bool is_on_main = options_.http.is_allowed && options_.access.control_is_on_main();
  const bool is_on_admin = options_.access.has_admin_listener();
  if (!options_.access.has_console || !(is_on_main || is_on_admin)) return;
  parts_->console = std::make_unique<ConsoleServers>(parts_->engine);
  ConsoleServers& console = *parts_->console;
  const auto make = [&](const std::string& address) {
    return std::make_unique<console::ConsoleHandler>(
        console::ConsoleOptions{
            .gate = parts_->gate.get(),
            .restrictions = options_.http.restrictions,
            .own_names = http::OwnNames(address, options_.http.cors.origins),
            .explain = [&engine = parts_->engine](
                           const std::string& model) { return ExplainModel(engine, model); }},
        parts_->engine, console.recorder, parts_->reactors.workers());
  };
  if (is_on_main) console.main = make(options_.http.address);
  if (is_on_admin) console.admin = make(AdminAddress(options_));
  console.recorder.Start();
}

http::ApiOptions Frontends::MakeApiOptions() const {
  return {.max_input_bytes = options_.http.max_input_bytes,
          .restrictions = options_.http.restrictions,
          .gate = parts_->gate.get(),
          .control = {.is_elsewhere = !options_.access.control_is_on_main(),
                      .where = std::string(kControlIsElsewhere)},
          .forwarder = options_.http.forwarder,
          .cors = options_.http.cors,
          .own_names = http::OwnNames(options_.http.address, options_.http.cors.origins),
          .stream_limits = {.most_waiting_bytes = options_.limits.stream_backlog_bytes},
          .budgets = &parts_->engine.budgets(),
          .openai = parts_->openai.get(),
          .elsewhere = parts_->console == nullptr ? nullptr : parts_->console->main.get()};
}

http1::HttpServerOptions Frontends::HttpOptionsForAll() const {
  core::Budgets& budgets = parts_->engine.budgets();
  http1::HttpServerOptions options;
  options.listener.unix_socket_mode = options_.unix_socket_mode;
  options.listener.budget = &parts_->connections;
  options.received_bytes = &budgets.request_bytes;
  options.unsent_bytes = &budgets.unsent_bytes;
  options.max_header_bytes = options_.limits.header_bytes;
  // The limit applies to tensors and to JSON separately; the handler checks both.
  options.max_body_bytes = options_.http.max_input_bytes + kMaxJsonHeadBytes;
  options.min_body_bytes_per_s = static_cast<uint64_t>(options_.min_body_rate);
  options.min_read_bytes_per_s = static_cast<uint64_t>(options_.limits.min_read_rate);
  options.write_timeout = options_.limits.write_timeout;
  return options;
}

base::Status Frontends::StartHttp() {
  parts_->openai =
      std::make_unique<openai::Handler>(MakeApiOptions(), parts_->engine, parts_->rounds);
  parts_->http_handler = std::make_unique<http::ApiHandler>(MakeApiOptions(), parts_->reactors,
                                                            parts_->engine, parts_->rounds);
  http1::HttpServerOptions options = HttpOptionsForAll();
  parts_->cloud = std::make_unique<CloudServers>(options_.cloud, options, parts_->reactors,
                                                 parts_->engine, *parts_->http_handler);
  if (!options_.http.is_allowed) return base::OkStatus();
  options.listener.address = options_.http.address;
  options.listener.port = static_cast<uint16_t>(options_.http.port);
  options.listener.reuse_port = options_.http.reuse_port;
  options.tls = ToNet(options_.http.ssl, parts_->tls_reloads);
  options.max_connection_age = options_.http.max_connection_age;
  auto server = http1::HttpServer::Start(options, parts_->reactors, *parts_->http_handler);
  if (!server.ok()) return StartError("HTTP", server.status());
  parts_->http = std::move(server).value();
  NEREID_LOG(kInfo, "Started HTTPService at {}",
             net::DescribeAddress(options_.http.address, parts_->http->port()));
  return base::OkStatus();
}

grpc::FrontendOptions Frontends::MakeGrpcOptions() const {
  const GrpcOptions& grpc = options_.grpc;
  grpc::FrontendOptions frontend;
  frontend.restrictions = grpc.restrictions;
  frontend.gate = parts_->gate.get();
  if (!options_.access.control_is_on_main()) frontend.control_is_elsewhere = kControlIsElsewhere;
  frontend.forwarder = grpc.forwarder;
  frontend.max_unsent_responses = static_cast<size_t>(grpc.max_response_pool_size);
  frontend.max_unsent_bytes = options_.limits.stream_backlog_bytes;
  frontend.max_stream_requests = options_.limits.requests;
  frontend.budgets = &parts_->engine.budgets();
  http2::GrpcServerOptions& options = frontend.server;
  options.listener = {grpc.address, static_cast<uint16_t>(grpc.port), grpc.reuse_port,
                      options_.unix_socket_mode, &parts_->connections};
  core::Budgets& budgets = parts_->engine.budgets();
  options.received_bytes = &budgets.request_bytes;
  options.unsent_bytes = &budgets.unsent_bytes;
  options.reset_refusals = &budgets.resets_per_second;
  options.control_refusals = &budgets.control_frames_per_second;
  options.resets_per_second = static_cast<uint32_t>(budgets.limits.resets_per_second);
  options.control_frames_per_second =
      static_cast<uint32_t>(budgets.limits.control_frames_per_second);
  options.max_concurrent_streams = options_.limits.requests;
  options.max_header_list_bytes = options_.limits.header_bytes;
  options.write_timeout = options_.limits.write_timeout;
  options.tls = ToNet(grpc.ssl, parts_->tls_reloads);
  options.min_message_bytes_per_s = static_cast<uint64_t>(options_.min_body_rate);
  options.response_compression = ToNet(grpc.response_compression);
  options.keepalive_time = grpc.keepalive_time;
  options.keepalive_timeout = grpc.keepalive_timeout;
  options.keepalive_permit_without_calls = grpc.keepalive_permit_without_calls;
  options.max_pings_without_data = grpc.max_pings_without_data;
  options.min_recv_ping_interval_without_data = grpc.min_ping_interval_without_data;
  options.max_ping_strikes = grpc.max_ping_strikes;
  options.max_connection_age = NothingIfZero(grpc.max_connection_age);
  options.max_connection_age_grace = NothingIfZero(grpc.max_connection_age_grace);
  return frontend;
}

base::Status Frontends::StartGrpc() {
  if (!options_.grpc.is_allowed) return base::OkStatus();
  auto server =
      grpc::Frontend::Start(MakeGrpcOptions(), {parts_->engine, parts_->reactors, parts_->rounds});
  if (!server.ok()) return StartError("GRPC", server.status());
  parts_->grpc = std::move(server).value();
  NEREID_LOG(kInfo, "Started GRPCInferenceService at {}",
             net::DescribeAddress(options_.grpc.address, parts_->grpc->port()));
  return base::OkStatus();
}

base::Status Frontends::StartMetrics() {
  const bool has_tls = HasTls(options_.http.ssl) || HasTls(options_.grpc.ssl);
  parts_->metrics_handler =
      std::make_unique<http::MetricsHandler>(parts_->reactors, parts_->engine, parts_->gate.get(),
                                             has_tls ? &parts_->tls_reloads : nullptr);
  if (!options_.metrics.is_allowed) return base::OkStatus();
  const std::string address = MetricsAddress(options_);
  http1::HttpServerOptions options = HttpOptionsForAll();
  options.listener.address = address;
  options.listener.port = static_cast<uint16_t>(options_.metrics.port);
  options.listener.budget = &parts_->metrics_connections.budget;
  auto server = http1::HttpServer::Start(options, parts_->reactors, *parts_->metrics_handler);
  if (!server.ok()) return StartError("Metrics", server.status());
  parts_->metrics = std::move(server).value();
  NEREID_LOG(kInfo, "Started Metrics Service at {}",
             net::DescribeAddress(address, parts_->metrics->port()));
  return base::OkStatus();
}

// Requests of all scopes are served here, so that one address is enough for whoever operates the
// server.
base::Status Frontends::StartAdmin() {
  if (!options_.access.has_admin_listener()) {
    NEREID_LOG(kInfo,
               "The control APIs are served on the HTTP and gRPC ports, as in Triton; --admin-port "
               "gives them a port of their own");
    return base::OkStatus();
  }
  http::ApiOptions api = MakeApiOptions();
  api.control = {};
  api.own_names = http::OwnNames(AdminAddress(options_), options_.http.cors.origins);
  api.elsewhere = parts_->console == nullptr ? nullptr : parts_->console->admin.get();
  parts_->admin_api = std::make_unique<http::ApiHandler>(std::move(api), parts_->reactors,
                                                         parts_->engine, parts_->rounds);
  parts_->admin_handler =
      std::make_unique<http::AdminHandler>(*parts_->admin_api, *parts_->metrics_handler);
  const std::string address = AdminAddress(options_);
  http1::HttpServerOptions options = HttpOptionsForAll();
  options.listener.address = address;
  options.listener.port = static_cast<uint16_t>(AdminPort(options_));
  options.tls = ToNet(options_.http.ssl, parts_->tls_reloads);
  auto server = http1::HttpServer::Start(options, parts_->reactors, *parts_->admin_handler);
  if (!server.ok()) return StartError("admin", server.status());
  parts_->admin = std::move(server).value();
  NEREID_LOG(kInfo, "Started Admin Service at {}{}",
             net::DescribeAddress(address, parts_->admin->port()),
             options_.access.control_is_on_main()
                 ? "; the HTTP and gRPC ports serve the control APIs as well"
                 : "; the HTTP and gRPC ports refuse the control APIs");
  return base::OkStatus();
}

base::Status Frontends::StartAdminGrpc() {
  if (!options_.access.admin_grpc_port) return base::OkStatus();
  grpc::FrontendOptions options = MakeGrpcOptions();
  options.control_is_elsewhere.clear();
  const std::string address = AdminAddress(options_);
  options.server.listener.address = address;
  options.server.listener.port = static_cast<uint16_t>(*options_.access.admin_grpc_port);
  options.server.listener.reuse_port = false;
  auto server = grpc::Frontend::Start(options, {parts_->engine, parts_->reactors, parts_->rounds});
  if (!server.ok()) return StartError("admin GRPC", server.status());
  parts_->admin_grpc = std::move(server).value();
  NEREID_LOG(kInfo, "Started Admin GRPC Service at {}",
             net::DescribeAddress(address, parts_->admin_grpc->port()));
  return base::OkStatus();
}

base::Status Frontends::Listen() {
  if (!options_.access.keys_file.empty()) {
    auto gate = access::Gate::Create(options_.access.keys_file);
    if (!gate.ok()) return gate.status().WithPrefix("--api-keys ");
    parts_->gate = std::move(gate).value();
  }
  MakeConsole();
  NEREID_RETURN_IF_ERROR(StartGrpc());
  NEREID_RETURN_IF_ERROR(StartHttp());
  NEREID_RETURN_IF_ERROR(StartMetrics());
  NEREID_RETURN_IF_ERROR(StartAdmin());
  NEREID_RETURN_IF_ERROR(StartAdminGrpc());
  if (const base::Status status = parts_->cloud->StartSagemaker(); !status.ok()) {
    return StartError("Sagemaker", status);
  }
  return base::OkStatus();
}

base::Status Frontends::ServeLoaded() {
  if (const base::Status status = parts_->cloud->StartVertexAi(); !status.ok()) {
    return StartError("Vertex AI", status);
  }
  return base::OkStatus();
}

Frontends::Ports Frontends::ports() const {
  Ports ports;
  if (parts_->http != nullptr) ports.http = parts_->http->port();
  if (parts_->grpc != nullptr) ports.grpc = parts_->grpc->port();
  if (parts_->metrics != nullptr) ports.metrics = parts_->metrics->port();
  if (parts_->admin != nullptr) ports.admin = parts_->admin->port();
  if (parts_->admin_grpc != nullptr) ports.admin_grpc = parts_->admin_grpc->port();
  return ports;
}

// Waits until each event loop has done what it was given; returns how many had not by the deadline.
static size_t CountHanging(net::ReactorPool& reactors, base::TimePoint deadline) {
  // Shared, since a loop that is late looks at it after this function has returned.
  struct Count {
    base::Mutex mutex;
    base::CondVar changed;
    size_t left NEREID_GUARDED_BY(mutex) = 0;
  };
  const auto count = std::make_shared<Count>();
  base::MutexLock lock(count->mutex);
  count->left = reactors.size();
  for (size_t i = 0; i < reactors.size(); ++i) {
    reactors.reactor(i).Post([count] {
      base::MutexLock inner(count->mutex);
      if (--count->left == 0) count->changed.NotifyAll();
    });
  }
  while (count->left > 0) {
    if (!count->changed.WaitUntil(count->mutex, deadline)) break;
  }
  return count->left;
}

bool Frontends::Answers(std::chrono::milliseconds patience) const {
  const size_t hanging =
      CountHanging(parts_->reactors, std::chrono::steady_clock::now() + patience);
  if (hanging > 0) {
    NEREID_LOG(kError, "the server did not answer within {} ms: {} of {} event loops hang",
               patience.count(), hanging, parts_->reactors.size());
  }
  return hanging == 0;
}

// The remaining time, for the log.
static int64_t SecondsLeft(base::TimePoint deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max<int64_t>(0, std::chrono::ceil<std::chrono::seconds>(left).count());
}

// `what` is worded as in Triton's server/src/{http,grpc}_server.cc.
static void LogConnections(base::TimePoint deadline, size_t count, const char* what) {
  if (count == 0) return;
  NEREID_LOG(kInfo, "Timeout {}: Found {} {}", SecondsLeft(deadline), count, what);
}

bool Frontends::Drain(base::TimePoint deadline) {
  bool all_answered = true;
  if (parts_->console != nullptr) parts_->console->recorder.Stop();
  if (parts_->http != nullptr) parts_->http->StopAccepting();
  if (parts_->admin != nullptr) parts_->admin->StopAccepting();
  if (parts_->cloud != nullptr) parts_->cloud->StopAccepting();
  if (parts_->http != nullptr) {
    LogConnections(deadline, parts_->http->connections(), "HTTP service connections");
  }
  if (parts_->grpc != nullptr) {
    LogConnections(deadline, parts_->grpc->connections(),
                   "gRPC service connections and inference handlers");
  }
  for (grpc::Frontend* frontend : {parts_->grpc.get(), parts_->admin_grpc.get()}) {
    if (frontend == nullptr) continue;
    frontend->EndStreams();
    all_answered &= frontend->Drain(deadline);
  }
  if (parts_->http != nullptr) all_answered &= parts_->http->Drain(deadline);
  if (parts_->admin != nullptr) all_answered &= parts_->admin->Drain(deadline);
  if (parts_->cloud != nullptr) all_answered &= parts_->cloud->Drain(deadline);
  return all_answered;
}

void Frontends::StopMetrics() {
  if (parts_->metrics != nullptr) parts_->metrics->Drain(std::chrono::steady_clock::now());
}

}  // namespace nereid::app
