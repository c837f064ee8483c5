// SPDX-License-Identifier: Apache-2.0
// The command line, with the flags of Triton and the grammar of getopt_long: --flag value,
// --flag=value, unambiguous prefixes.
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

// Of one protocol's port. Files are PEM.
struct SslOptions {
  bool is_used = false;
  bool is_mutual = false;  // clients must show a certificate, which implies is_used
  std::string server_cert;
  std::string server_key;
  std::string root_cert;
};

// --http-…
struct HttpOptions {
  bool is_allowed = true;
  std::string address = "0.0.0.0";
  int32_t port = 8000;  // checked only when the service is on, as those below
  bool reuse_port = false;
  int thread_count = 0;  // 0: chosen from the CPUs
  size_t max_input_bytes = size_t{64} << 20;
  common::Restrictions restrictions;
  std::shared_ptr<const common::HeaderForwarder> forwarder;
  http::CorsOptions cors;
  SslOptions ssl;
  std::chrono::milliseconds max_connection_age{0};  // 0: for ever
};

enum class CompressionLevel { kNone, kLow, kMedium, kHigh };

// --grpc-…
struct GrpcOptions {
  bool is_allowed = true;
  std::string address = "0.0.0.0";
  int32_t port = 8001;
  bool reuse_port = false;
  int thread_count = 0;  // 0: chosen from the CPUs
  CompressionLevel response_compression = CompressionLevel::kNone;
  int max_response_pool_size = INT32_MAX;  // responses of one stream that may wait for its client
  std::chrono::milliseconds keepalive_time{7'200'000};
  std::chrono::milliseconds keepalive_timeout{20'000};
  bool keepalive_permit_without_calls = false;
  int max_pings_without_data = 2;
  std::chrono::milliseconds min_ping_interval_without_data{300'000};
  int max_ping_strikes = 2;
  std::chrono::milliseconds max_connection_age{0};        // 0: for ever
  std::chrono::milliseconds max_connection_age_grace{0};  // 0: for ever
  SslOptions ssl;
  common::Restrictions restrictions;
  std::shared_ptr<const common::HeaderForwarder> forwarder;
};

// --metrics-… and --allow-metrics
struct MetricsOptions {
  bool is_allowed = true;
  std::string address;  // empty: see MetricsAddress
  int32_t port = 8002;
};

// Settings of traces as they were given, until all of them are known.
struct TraceFlags {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  Settings server, triton, opentelemetry;
  // The older flags of the same meaning.
  std::optional<std::string> file;
  std::optional<uint32_t> levels;
  std::optional<uint32_t> rate;
  std::optional<int32_t> count;
  std::optional<uint32_t> log_frequency;
  bool is_off = false;  // some level was OFF, which wins
};

// Everything that the command line says.
struct Options {
  bool wants_help = false;
  bool wants_version = false;
  base::LogOptions log;
  engine::EngineOptions engine;
  HttpOptions http;
  GrpcOptions grpc;
  MetricsOptions metrics;
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
  // Bytes a second below which a body, or a message, that is half received is given up; 0: never.
  int min_body_rate = 240;
  mode_t unix_socket_mode = 0660;     // of the files of unix:<path> addresses
  std::vector<std::string> warnings;  // to be logged once the log is up
};

// Where metrics are served: unless the flag says so, where HTTP is; and on this machine only when
// that is a Unix socket, whose user does not want a port open to others.
std::string MetricsAddress(const Options& options);

// The error is one line that names the flag, the value and what was expected.
base::Result<Options> ParseCommandLine(int argc, char** argv);

// What --help prints.
std::string Usage(std::string_view program);

}  // namespace nereid::app
