// SPDX-License-Identifier: Apache-2.0
// Names, defaults and meanings follow Triton's server/src/command_line_parser.cc.
#include "app/flags.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

#include "app/backend_flags.h"
#include "app/budget_flags.h"
#include "app/flag_setters.h"
#include "app/flag_values.h"
#include "app/on_demand_flags.h"
#include "app/trace_flags.h"

namespace nereid::app {
namespace {

using base::InvalidArgumentError;
using base::OkStatus;
using base::Status;
using std::chrono::milliseconds;

Status SetAdminAddress(std::string_view value, Options& options) {
  if (value.empty()) return InvalidArgumentError("expected an address");
  options.access.admin_address = std::string(value);
  return OkStatus();
}

Status AddRepository(std::string_view value, Options& options) {
  if (value.empty()) return InvalidArgumentError("expected the path of a model repository");
  options.engine.repository.repositories.emplace_back(value);
  return OkStatus();
}

Status SetVerbose(std::string_view value, Options& options) {
  if (const base::Result<bool> on = ReadBool(value); on.ok() && value != "0" && value != "1") {
    options.log.verbose_level = *on ? 1 : 0;
    return OkStatus();
  }
  NEREID_ASSIGN_OR_RETURN(const int64_t level, ReadInteger(value, 0, kIntMax));
  options.log.verbose_level = static_cast<int>(level);
  return OkStatus();
}

Status SetLogFormat(std::string_view value, Options& options) {
  const auto format = base::ParseLogFormat(value);
  if (!format) return InvalidArgumentError("expected default, ISO8601 or json");
  options.log.format = *format;
  return OkStatus();
}

Status SetControlMode(std::string_view value, Options& options) {
  static constexpr std::string_view kModes[] = {"none", "poll", "explicit", "ondemand"};
  NEREID_ASSIGN_OR_RETURN(const size_t mode, ReadChoice(value, kModes));
  options.engine.control.mode =
      std::array{engine::ControlMode::kNone, engine::ControlMode::kPoll,
                 engine::ControlMode::kExplicit, engine::ControlMode::kOnDemand}[mode];
  options.has_control_mode = true;
  return OkStatus();
}

Status AddStartupModel(std::string_view value, Options& options) {
  if (value.empty()) return InvalidArgumentError("expected the name of a model");
  options.engine.control.startup_models.emplace(value);
  return OkStatus();
}

// Whoever gives a number means all repositories.
Status SetGenerationInterval(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t number, ReadInteger(value, 0, kIntMax));
  options.engine.generation_interval = std::chrono::milliseconds(number);
  options.engine.looks_into_object_stores = true;
  return OkStatus();
}

// A flag of Triton's first releases, before --model-control-mode.
Status SetAllowPolling(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(options.allows_polling, ReadBool(value));
  options.warnings.emplace_back(
      "'--allow-poll-model-repository' has been deprecated, use '--model-control-mode=poll' "
      "instead");
  return OkStatus();
}

Status SetAllowControl(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(options.allows_control, ReadBool(value));
  options.warnings.emplace_back(
      "'--allow-model-control' has been deprecated, use '--model-control-mode=explicit' instead");
  return OkStatus();
}

Status DisableAutoComplete(std::string_view, Options& options) {
  options.engine.repository.disable_auto_complete = true;
  return OkStatus();
}

Status SetStrictConfig(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(options.strict_model_config, ReadBool(value));
  // The text is that of Triton's server/src/command_line_parser.cc, because scripts search for it.
  options.warnings.emplace_back(
      "Warning: '--strict-model-config' has been deprecated! Please use "
      "'--disable-auto-complete-config' instead.");
  return OkStatus();
}

Status SetConfigName(std::string_view value, Options& options) {
  if (value.empty()) return InvalidArgumentError("expected the name of a configuration");
  options.engine.repository.model_config_name = std::string(value);
  return OkStatus();
}

Status SetMaxInputSize(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t bytes,
                          ReadInteger(value, std::numeric_limits<int64_t>::min()));
  if (bytes < 1) {
    return InvalidArgumentError("Error: --http-max-input-size must be greater than 0.");
  }
  options.http.max_input_bytes = static_cast<size_t>(bytes);
  return OkStatus();
}

Status SetCompressionLevel(std::string_view value, Options& options) {
  static constexpr std::string_view kLevels[] = {"none", "low", "medium", "high"};
  NEREID_ASSIGN_OR_RETURN(const size_t level, ReadChoice(value, kLevels));
  options.grpc.response_compression =
      std::array{CompressionLevel::kNone, CompressionLevel::kLow, CompressionLevel::kMedium,
                 CompressionLevel::kHigh}[level];
  return OkStatus();
}

template <auto Member>
Status SetForwardPattern(std::string_view value, Options& options) {
  Member(options) = nullptr;
  if (value.empty()) return OkStatus();
  auto forwarder = common::HeaderForwarder::Create(value);
  if (!forwarder.ok()) return forwarder.status();
  Member(options) = std::move(forwarder).value();
  return OkStatus();
}

bool IsHeaderText(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
}

// Applies text that is copied into a header.
template <auto Member>
Status SetHeaderText(std::string_view value, Options& options) {
  if (!IsHeaderText(value)) return InvalidArgumentError("expected printable ASCII characters");
  Member(options) = std::string(value);
  return OkStatus();
}

Status AddCorsOrigin(std::string_view value, Options& options) {
  if (!IsHeaderText(value) || (value != "*" && value.find("://") == std::string_view::npos)) {
    return InvalidArgumentError("expected an origin such as https://app.example.com, or *");
  }
  options.http.cors.origins.emplace_back(value);
  return OkStatus();
}

// Applies <min>-<max>.
Status SetSafePorts(std::string_view value, Options& options) {
  const auto pair = ReadPair(value, '-');
  const auto min = pair.ok() ? ReadInteger(pair->first, 0, 65535) : pair.status();
  const auto max = pair.ok() ? ReadInteger(pair->second, 0, 65535) : pair.status();
  if (!min.ok() || !max.ok()) {
    return InvalidArgumentError("expected a range of ports, such as 8081-9000");
  }
  options.cloud.safe_ports.emplace(static_cast<uint16_t>(*min), static_cast<uint16_t>(*max));
  return OkStatus();
}

// Applies <setting>=<value>.
Status AddMetricsConfig(std::string_view value, Options& options) {
  const auto setting = ReadPair(value, '=');
  if (!setting.ok() || setting->second.empty() || setting->first.find(',') != std::string::npos) {
    return InvalidArgumentError(
        fmt::format("--metrics-config option format is <setting>=<value>. Got {}", value));
  }
  const auto warning =
      engine::ApplyMetricsSetting(setting->first, setting->second, options.engine.metrics);
  if (warning) options.warnings.push_back(*warning);
  return OkStatus();
}

Status SetUnixSocketMode(std::string_view value, Options& options) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mode, 8);
  if (error != std::errc() || end != value.data() + value.size() || mode > 0777) {
    return InvalidArgumentError("expected permissions such as 660");
  }
  options.unix_socket_mode = mode;
  return OkStatus();
}

Status WantHelp(std::string_view, Options& options) {
  options.wants_help = true;
  return OkStatus();
}

Status WantVersion(std::string_view, Options& options) {
  options.wants_version = true;
  return OkStatus();
}

#define FIELD(path) +[](Options& o) -> auto& { return o.path; }

constexpr Flag kGeneral[] = {
    {"help", "", "Print this text and exit.", WantHelp},
    {"version", "", "Print the version of Nereid and that of Triton that it replaces, and exit.",
     WantVersion},
    {"id", kString, "Name of the server in its metadata (triton).",
     SetString<FIELD(engine.server_id)>},
    {"exit-timeout-secs", kInteger,
     "Seconds that requests in flight get to finish on shutdown (30).",
     SetSeconds<FIELD(exit_timeout)>},
    {"drain-secs", kInteger,
     "Seconds for which the server goes on serving at shutdown, although no longer ready, so that "
     "load balancers can stop sending requests (0).",
     SetSeconds<FIELD(drain_time)>},
    {"watchdog-secs", kInteger,
     "Seconds without progress after which a thread of the server counts as stuck: the server is "
     "then no longer live or, if only an instance is concerned, its model no longer ready. "
     "0: never (30).",
     SetSeconds<FIELD(engine.watchdog_limit)>},
    {"watchdog-execution-secs", kInteger,
     "The same for one execution of a model on its instance's thread, which may take minutes by "
     "its nature. 0: never (0).",
     SetSeconds<FIELD(engine.execution_limit)>},
    {"exit-on-fatal-error", kBool,
     "Exit after an error that only a new process cures, such as a GPU's; false: stay, not live "
     "(false).",
     SetBool<FIELD(exits_on_fatal_error)>},
    {"min-body-rate", kInteger,
     "Bytes a second at which a request body or a gRPC message must at least arrive, checked every "
     "30 s. Slower requests are refused; 0: none are (240).",
     SetInteger<FIELD(min_body_rate), 0, kIntMax>},
    {"unix-socket-mode", kString,
     "Permissions (octal) of the files of unix:<path> addresses (660).", SetUnixSocketMode},
};

constexpr Flag kLogging[] = {
    {"log-verbose", kInteger, "Verbosity of the log; 0: off (0).", SetVerbose},
    {"log-info", kBool, "Log information (true).", SetBool<FIELD(log.info)>},
    {"log-warning", kBool, "Log warnings (true).", SetBool<FIELD(log.warning)>},
    {"log-error", kBool, "Log errors (true).", SetBool<FIELD(log.error)>},
    {"log-format", kString, "Format of the log: default, ISO8601 or json (default).", SetLogFormat},
    {"log-file", kString,
     "File to log to; empty: standard output and, for warnings and errors, standard error.",
     SetString<FIELD(log.file)>},
};

constexpr Flag kRepository[] = {
    {"model-repository", kString,
     "Path of a model repository: a folder, s3://..., gs://..., as://... or azure://... May be "
     "given several times.",
     AddRepository},
    {"model-store", kString, "Same as --model-repository.", AddRepository},
    {"exit-on-error", kBool,
     "Exit if a model fails to load at the start; false: serve the others (true).",
     SetBool<FIELD(engine.exit_on_error)>},
    {"strict-readiness", kBool, "The server is ready only if all models are (true).",
     SetBool<FIELD(engine.strict_readiness)>},
    {"disable-auto-complete-config", "",
     "Do not complete configurations from the models; every model needs a full config.pbtxt.",
     DisableAutoComplete},
    {"strict-model-config", kBool, "Deprecated: --disable-auto-complete-config.", SetStrictConfig},
    {"model-control-mode", kString,
     "How models are loaded and unloaded: none, poll, explicit or ondemand (none).",
     SetControlMode},
    {"allow-poll-model-repository", kBool, "Deprecated: --model-control-mode=poll.",
     SetAllowPolling},
    {"allow-model-control", kBool, "Deprecated: --model-control-mode=explicit.", SetAllowControl},
    {"repository-poll-secs", kInteger,
     "Seconds between polls of the repositories in poll mode, and between looks for new models on "
     "demand; 0: none after the start (15).",
     SetSeconds<FIELD(engine.poll_interval)>},
    {"generation-poll-ms", kInteger,
     "Milliseconds between looks at each repository's generation file, which 'nereid load "
     "--repository' writes; 0: never. Not in the mode none (500 for folders, 0 for object stores).",
     SetGenerationInterval},
    {"load-model", kString,
     "Model to load at the start in explicit mode, or on demand. May be given several times; '*' "
     "alone: all.",
     AddStartupModel},
    {"model-config-name", kString,
     "Use a model's configs/<name>.pbtxt, if it exists, instead of its config.pbtxt.",
     SetConfigName},
    {"model-load-thread-count", kInteger, "Number of models that are loaded at the same time (4).",
     SetInteger<FIELD(engine.model_load_threads), 1, 1024>},
    {"model-load-retry-count", kInteger, "How many times a failed load is repeated (0).",
     SetInteger<FIELD(engine.model_load_retries), 0, 1'000'000>},
    {"model-namespacing", kBool, "Allow models of the same name in different repositories (false).",
     SetBool<FIELD(engine.repository.has_namespaces)>},
    {"enable-peer-access", kBool, "Let GPUs reach each other's memory (true).",
     SetBool<FIELD(engine.gpus.enables_peer_access)>},
};

constexpr Flag kHttp[] = {
    {"allow-http", kBool, "Serve HTTP/REST (true).", SetBool<FIELD(http.is_allowed)>},
    {"http-address", kString, "Address to listen on, or unix:<path> (0.0.0.0).",
     SetString<FIELD(http.address)>},
    {"http-port", kInteger, "Port to listen on; 0: any free port (8000).",
     SetPort<FIELD(http.port)>},
    {"reuse-http-port", kBool, "Listen with SO_REUSEPORT (false).",
     SetBool<FIELD(http.reuse_port)>},
    {"http-thread-count", kInteger,
     "Number of event loop threads. All protocols share them; the largest count is used.",
     SetInteger<FIELD(http.thread_count), 1, 1024>},
    {"http-max-input-size", kInteger,
     "Largest JSON of a request, and largest body after decompression, in bytes (67108864).",
     SetMaxInputSize},
    {"http-header-forward-pattern", kString,
     "Request headers whose names match become parameters of the request (none).",
     SetForwardPattern<FIELD(http.forwarder)>},
    {"http-restricted-api", "<string>:<string>=<string>",
     "<api>[,<api>...]:<header>=<value>: requests to these APIs need the header. APIs: health, "
     "metadata, inference, shared-memory, model-config, model-repository, statistics, trace, "
     "logging.",
     [](std::string_view value, Options& options) {
       return options.http.restrictions.Add(value, "http-restricted-api", "api", "");
     },
     true},
    {"http-max-connection-age", kInteger,
     "Milliseconds, roughly, after which a connection ends with its next reply; 0: never (0).",
     SetMilliseconds<FIELD(http.max_connection_age)>},
    {"http-use-ssl", kBool, "Serve HTTP over TLS only (false).", SetBool<FIELD(http.ssl.is_used)>},
    {"http-use-ssl-mutual", kBool, "Accept only clients with a certificate, over TLS (false).",
     SetBool<FIELD(http.ssl.is_mutual)>},
    {"http-server-cert", kString,
     "PEM file of the server's certificate and its chain; read again when it changes.",
     SetString<FIELD(http.ssl.server_cert)>},
    {"http-server-key", kString, "PEM file of the key of the server's certificate.",
     SetString<FIELD(http.ssl.server_key)>},
    {"http-root-cert", kString, "PEM file of the authorities that sign clients' certificates.",
     SetString<FIELD(http.ssl.root_cert)>},
    {"http-cors-allow-origin", kString,
     "Origin whose pages may read responses, or '*'. May be given several times (none).",
     AddCorsOrigin},
    {"http-cors-allow-methods", kString,
     "Methods that pages of allowed origins may use (GET, HEAD, POST).",
     SetHeaderText<FIELD(http.cors.methods)>},
    {"http-cors-allow-headers", kString,
     "Headers that pages of allowed origins may send, separated by commas.",
     SetHeaderText<FIELD(http.cors.headers)>},
    {"http-cors-max-age", kInteger,
     "Seconds for which a browser may cache the response to a preflight request (600).",
     SetInteger<FIELD(http.cors.max_age_s), 0, 86'400>},
};

constexpr Flag kGrpc[] = {
    {"allow-grpc", kBool, "Serve gRPC (true).", SetBool<FIELD(grpc.is_allowed)>},
    {"grpc-address", kString, "Address to listen on, or unix:<path> (0.0.0.0).",
     SetString<FIELD(grpc.address)>},
    {"grpc-port", kInteger, "Port to listen on; 0: any free port (8001).",
     SetPort<FIELD(grpc.port)>},
    {"reuse-grpc-port", kBool, "Listen with SO_REUSEPORT (false).",
     SetBool<FIELD(grpc.reuse_port)>},
    {"grpc-infer-thread-count", kInteger, "Number of event loop threads; see --http-thread-count.",
     SetInteger<FIELD(grpc.thread_count), 2, 128>},
    {"grpc-infer-allocation-pool-size", kInteger,
     "Accepted for compatibility; requests are always pooled.", IgnoreInteger},
    {"grpc-max-response-pool-size", kInteger,
     "Responses that may wait until the client of a stream reads them; beyond that, the decoupled "
     "model waits (2147483647).",
     [](std::string_view value, Options& options) {
       NEREID_ASSIGN_OR_RETURN(const int64_t size, ReadInteger(value, -kIntMax, kIntMax));
       if (size < 1) {
         return InvalidArgumentError(
             "Error: --grpc-max-response-pool-size must be greater than 0.");
       }
       options.grpc.max_response_pool_size = static_cast<int>(size);
       return OkStatus();
     }},
    {"grpc-infer-response-compression-level", kString,
     "Compression of responses: none, low, medium or high (none).", SetCompressionLevel},
    {"grpc-keepalive-time", kInteger,
     "Milliseconds without data after which the server sends a ping (7200000).",
     SetMilliseconds<FIELD(grpc.keepalive_time)>},
    {"grpc-keepalive-timeout", kInteger, "Milliseconds to wait for the reply to a ping (20000).",
     SetMilliseconds<FIELD(grpc.keepalive_timeout)>},
    {"grpc-keepalive-permit-without-calls", kBool,
     "Send pings even when no call is in progress (false).",
     SetBool<FIELD(grpc.keepalive_permit_without_calls)>},
    {"grpc-http2-max-pings-without-data", kInteger,
     "Number of pings that may be sent without data in between; 0: any number (2).",
     SetInteger<FIELD(grpc.max_pings_without_data), 0, kIntMax>},
    {"grpc-http2-min-recv-ping-interval-without-data", kInteger,
     "Least milliseconds between two pings of a client that has no calls (300000).",
     SetMilliseconds<FIELD(grpc.min_ping_interval_without_data)>},
    {"grpc-http2-max-ping-strikes", kInteger,
     "Number of pings sent too soon after which a connection is closed; 0: any number (2).",
     SetInteger<FIELD(grpc.max_ping_strikes), 0, kIntMax>},
    {"grpc-max-connection-age", kInteger,
     "Milliseconds for which a connection may be used; 0: for ever (0).",
     SetMilliseconds<FIELD(grpc.max_connection_age)>},
    {"grpc-max-connection-age-grace", kInteger,
     "Milliseconds that calls get to finish after that; 0: for ever (0).",
     SetMilliseconds<FIELD(grpc.max_connection_age_grace)>},
    {"grpc-use-ssl", kBool, "Serve gRPC over TLS only (false).", SetBool<FIELD(grpc.ssl.is_used)>},
    {"grpc-use-ssl-mutual", kBool, "Accept only clients with a certificate, over TLS (false).",
     SetBool<FIELD(grpc.ssl.is_mutual)>},
    {"grpc-server-cert", kString,
     "PEM file of the server's certificate and its chain; read again when it changes.",
     SetString<FIELD(grpc.ssl.server_cert)>},
    {"grpc-server-key", kString, "PEM file of the key of the server's certificate.",
     SetString<FIELD(grpc.ssl.server_key)>},
    {"grpc-root-cert", kString, "PEM file of the authorities that sign clients' certificates.",
     SetString<FIELD(grpc.ssl.root_cert)>},
    {"grpc-header-forward-pattern", kString,
     "Metadata entries whose names match become parameters of the request (none).",
     SetForwardPattern<FIELD(grpc.forwarder)>},
    {"grpc-restricted-protocol", "<string>:<string>=<string>",
     "<protocol>[,<protocol>...]:<key>=<value>: these RPCs need the metadata "
     "triton-grpc-protocol-<key>. Protocols: the APIs of --http-restricted-api.",
     [](std::string_view value, Options& options) {
       return options.grpc.restrictions.Add(value, "grpc-restricted-protocol", "protocol",
                                            "triton-grpc-protocol-");
     },
     true},
};

constexpr Flag kMetrics[] = {
    {"allow-metrics", kBool, "Serve metrics (true).", SetBool<FIELD(metrics.is_allowed)>},
    {"allow-gpu-metrics", kBool, "Include GPU metrics if there is a GPU (true).",
     SetBool<FIELD(engine.metrics.has_gpu)>},
    {"allow-cpu-metrics", kBool, "Include CPU metrics (true).",
     SetBool<FIELD(engine.metrics.has_cpu)>},
    {"metrics-address", kString,
     "Address to listen on, or unix:<path> (that of HTTP, or 127.0.0.1 if that is a path).",
     SetString<FIELD(metrics.address)>},
    {"metrics-port", kInteger, "Port to listen on; 0: any free port (8002).",
     SetPort<FIELD(metrics.port)>},
    {"metrics-interval-ms", kInteger,
     "CPU and GPU values are measured again when they are older than half of this (2000).",
     SetMilliseconds<FIELD(engine.metrics.interval)>},
    {"metrics-config", "<string>=<string>",
     "Which kinds of metric are collected: counter_latencies, histogram_latencies, "
     "summary_latencies and nereid_histograms (true or false), summary_quantiles "
     "(<quantile>:<error>,...).",
     AddMetricsConfig},
};

constexpr Flag kAccess[] = {
    {"api-keys", kString,
     "File that says who may do what, by API keys, tokens and certificates; read again when it "
     "changes (none: everybody may do everything). 'nereid keys' writes it.",
     SetString<FIELD(access.keys_file)>},
    {"admin-address", kString,
     "Address of the admin listener, or unix:<path>; other than this machine's own only with "
     "--api-keys (127.0.0.1).",
     SetAdminAddress},
    {"admin-port", kInteger,
     "Port of the admin listener, which serves the whole API over HTTP and the metrics; 0: any "
     "free port (8003, if one of these flags asks for the listener).",
     SetPort<FIELD(access.admin_port)>},
    {"admin-grpc-port", kInteger,
     "Port of the admin listener for gRPC, which serves all RPCs; 0: any free port (none).",
     SetPort<FIELD(access.admin_grpc_port)>},
    {"admin-on-main", kBool,
     "Whether the HTTP and gRPC ports serve the control APIs too: loading, and the settings of "
     "traces and of the log (true, or false with an admin listener).",
     SetBool<FIELD(access.admin_on_main)>},
    {"console", kBool,
     "Whether there is a page for browsers at /ui, wherever the control APIs are served (true).",
     SetBool<FIELD(access.has_console)>},
};

constexpr Flag kTracing[] = {
    {"trace-config", "[<mode>,]<string>=<string>",
     "A setting for traces: level, rate, count or mode; triton,file=<path> and "
     "triton,log-frequency=<integer>; opentelemetry,url=<url>, "
     "opentelemetry,resource=<key>=<value> "
     "and opentelemetry,bsp_max_queue_size, bsp_schedule_delay and bsp_max_export_batch_size.",
     AddTraceConfig},
    {"trace-file", kString, "Deprecated: --trace-config triton,file=<path>.", SetTraceFile},
    {"trace-level", kString, "Deprecated: --trace-config level=<level>.", SetTraceLevel},
    {"trace-rate", kInteger, "Deprecated: --trace-config rate=<integer>.", SetTraceRate},
    {"trace-count", kInteger, "Deprecated: --trace-config count=<integer>.", SetTraceCount},
    {"trace-log-frequency", kInteger, "Deprecated: --trace-config triton,log-frequency=<integer>.",
     SetTraceLogFrequency},
};

constexpr Flag kCloud[] = {
    {"allow-sagemaker", kBool, "Serve Amazon SageMaker's requests (false).",
     SetBool<FIELD(cloud.sagemaker.is_allowed)>},
    {"sagemaker-address", kString, "Address to listen on (0.0.0.0).",
     SetString<FIELD(cloud.sagemaker.address)>},
    {"sagemaker-port", kInteger, "Port to listen on ($SAGEMAKER_BIND_TO_PORT, otherwise 8080).",
     SetInteger<FIELD(cloud.sagemaker.port), 0, 65535>},
    {"sagemaker-safe-port-range", "<integer>-<integer>", "Ports that all other services must use.",
     SetSafePorts},
    {"sagemaker-thread-count", kInteger, "Number of event loop threads; see --http-thread-count.",
     SetInteger<FIELD(cloud.sagemaker.thread_count), 1, 1024>},
    {"allow-vertex-ai", kBool,
     "Serve Google Vertex AI's requests (true if AIP_MODE=PREDICTION; HTTP and gRPC are then off "
     "by default).",
     SetBool<FIELD(cloud.vertex_ai.is_allowed)>},
    {"vertex-ai-address", kString, "Address to listen on (0.0.0.0).",
     SetString<FIELD(cloud.vertex_ai.address)>},
    {"vertex-ai-port", kInteger, "Port to listen on ($AIP_HTTP_PORT, otherwise 8080).",
     SetInteger<FIELD(cloud.vertex_ai.port), 0, 65535>},
    {"vertex-ai-thread-count", kInteger, "Number of event loop threads; see --http-thread-count.",
     SetInteger<FIELD(cloud.vertex_ai.thread_count), 1, 1024>},
    {"vertex-ai-default-model", kString,
     "Model that serves predictions; required if there are several models.",
     SetString<FIELD(cloud.vertex_ai_entry.default_model)>},
};

#undef FIELD

}  // namespace

std::span<const FlagGroup> AllFlags() {
  static const FlagGroup kGroups[] = {
      {"General", kGeneral},
      {"Logging", kLogging},
      {"Model repository", kRepository},
      {"HTTP", kHttp},
      {"gRPC", kGrpc},
      {"Metrics", kMetrics},
      {"Access", kAccess},
      {"Tracing", kTracing},
      {"Cloud entry points", kCloud},
      {"Backends and models", BackendFlags()},
      {"Models on demand", OnDemandFlags()},
      {"Limits", BudgetFlags()},
  };
  return kGroups;
}

}  // namespace nereid::app
