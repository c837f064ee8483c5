// SPDX-License-Identifier: Apache-2.0
// The command line, with Triton's flags and the syntax of getopt_long: --flag value, --flag=value,
// unambiguous prefixes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "app/cloud.h"
#include "base/log.h"
#include "base/status.h"
#include "common/header_forwarding.h"
#include "common/restrictions.h"
#include "engine/engine.h"
#include "http/cors.h"

namespace nereid::app {

// The TLS settings of one protocol. Files are PEM.
struct SslOptions {
  bool is_used = false;
  bool is_mutual = false;  // requires certificates of clients; implies is_used
  std::string server_cert;
  std::string server_key;
  std::string root_cert;
};

// The flags --http-…
struct HttpOptions {
  bool is_allowed = true;
  std::string address = "0.0.0.0";
  int32_t port = 8000;  // validated only if the service is enabled, like the ports below
  bool reuse_port = false;
  int thread_count = 0;  // 0: chosen from the number of CPUs
  size_t max_input_bytes = size_t{64} << 20;
  common::Restrictions restrictions;
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  http::CorsOptions cors;
  SslOptions ssl;
  std::chrono::milliseconds max_connection_age{0};  // 0: unlimited
};

// The values of --grpc-infer-response-compression-level.
enum class CompressionLevel { kNone, kLow, kMedium, kHigh };

// The flags --grpc-…
struct GrpcOptions {
  bool is_allowed = true;
  std::string address = "0.0.0.0";
  int32_t port = 8001;
  bool reuse_port = false;
  int thread_count = 0;  // 0: chosen from the number of CPUs
  CompressionLevel response_compression = CompressionLevel::kNone;
  int max_response_pool_size = INT32_MAX;  // queued responses of one stream
  std::chrono::milliseconds keepalive_time{7'200'000};
  std::chrono::milliseconds keepalive_timeout{20'000};
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  std::chrono::milliseconds min_ping_interval_without_data{300'000};
  int max_ping_strikes = 2;
  std::chrono::milliseconds max_connection_age{0};        // 0: unlimited
  std::chrono::milliseconds max_connection_age_grace{0};  // 0: unlimited
  SslOptions ssl;
  common::Restrictions restrictions;
  std::shared_ptr<const common::HeaderForwarder> forwarder;
};

// The limits of single connections and streams. Those of all clients together are
// engine.budgets.
struct ConnectionLimits {
  uint32_t requests = 8192;  // in progress, over gRPC: calls, and requests of one stream
  size_t header_bytes = 64 << 10;
  size_t stream_backlog_bytes = size_t{64} << 20;
  std::chrono::seconds write_timeout{120};
  int64_t min_read_rate = 240;
};

// The flags --metrics-… and --allow-metrics
struct MetricsOptions {
  bool is_allowed = true;
  std::string address;  // empty: see MetricsAddress
  int32_t port = 8002;
};

// The flags --api-keys and --admin-…
struct AccessOptions {
  std::string keys_file;  // empty: everybody may do everything
  // The admin listener is opened if any of these was given, and one for gRPC if its port was.
  std::optional<std::string> admin_address;
  std::optional<int32_t> admin_port;
  std::optional<int32_t> admin_grpc_port;
  std::optional<bool> admin_on_main;
  bool has_console = true;  // at /ui, wherever the control APIs are served

  bool has_admin_listener() const {
    return admin_address || admin_port || admin_grpc_port || !admin_on_main.value_or(true);
  }
  // Whether the HTTP and gRPC ports serve the control APIs, as Triton's do.
  bool control_is_on_main() const { return admin_on_main.value_or(!has_admin_listener()); }
};

// Flags of traces in their original form, until all of them are known.
struct TraceFlags {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  Settings server, triton, opentelemetry;
  // Older flags with the same meaning.
  std::optional<std::string> file;
  std::optional<uint32_t> levels;
  std::optional<uint32_t> rate;
  std::optional<int32_t> count;
  std::optional<uint32_t> log_frequency;
  bool is_off = false;  // a level was OFF, which overrides the others
};

// All settings of the command line.
struct Options {
  bool wants_help = false;
  bool wants_version = false;
  base::LogOptions log;
  engine::EngineOptions engine;
  HttpOptions http;
  GrpcOptions grpc;
  MetricsOptions metrics;
  AccessOptions access;
  CloudOptions cloud;
  bool has_control_mode = false;
  bool allows_polling = false;
  bool allows_control = false;
  TraceFlags trace;
  std::optional<bool> strict_model_config;  // the older flag for disable_auto_complete
  bool has_cache_config = false;
  bool has_cache_byte_size = false;
  std::chrono::seconds exit_timeout{30};
  std::chrono::seconds drain_time{0};
  bool exits_on_fatal_error = false;
  ConnectionLimits limits;
  // The minimum bytes per second of an incomplete body or message; slower ones are aborted. 0: no
  // limit.
  int min_body_rate = 240;
  mode_t unix_socket_mode = 0660;     // of socket files of unix:<path> addresses
  std::vector<std::string> warnings;  // to be logged when the log is open
};

// The address of the metrics server: by default that of HTTP. If that is a Unix socket, the default
// is the loopback address, because its user does not expect a port open to others.
std::string MetricsAddress(const Options& options);

// The address of the admin listener: by default the loopback address.
std::string AdminAddress(const Options& options);
int32_t AdminPort(const Options& options);
// Whether only this machine, or users of a socket's file, can connect to that address.
bool IsLocalAddress(std::string_view address);

// The error is one line with the flag, its value and what was expected.
base::Result<Options> ParseCommandLine(int argc, char** argv);

// Returns the text of --help.
std::string Usage(std::string_view program);

}  // namespace nereid::app
