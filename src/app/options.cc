// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <arpa/inet.h>
#include <getopt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "app/flag_values.h"
#include "app/flags.h"
#include "app/on_demand_flags.h"
#include "app/trace_flags.h"
#include "base/nearest_name.h"
#include "base/unix_address.h"
#include "engine/directories.h"

namespace nereid::app {
namespace {

std::vector<const Flag*> FlatFlags() {
  std::vector<const Flag*> flags;
  for (const FlagGroup& group : AllFlags()) {
    for (const Flag& flag : group.flags) flags.push_back(&flag);
  }
  return flags;
}

// Returns the flag that was probably meant; empty if none is similar.
std::string_view NearestFlag(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Flag* flag : FlatFlags()) names.push_back(flag->name);
  return base::NearestName(name, names);
}

// Describes in one line what getopt_long refused.
base::Status RefusedFlag(int kind, std::string_view argument) {
  if (kind == ':')
    return base::InvalidArgumentError(fmt::format("flag '{}' needs a value", argument));
  // The value is removed, because it may be a secret.
  argument = argument.substr(0, argument.find('='));
  const std::string_view name =
      argument.substr(std::min(argument.find_first_not_of('-'), argument.size()));
  std::vector<std::string_view> candidates;
  for (const Flag* flag : FlatFlags()) {
    if (!name.empty() && flag->name.starts_with(name)) candidates.push_back(flag->name);
  }
  if (argument.starts_with("--") && candidates.size() > 1) {
    std::string list;
    for (const std::string_view candidate : candidates) list += fmt::format(" --{}", candidate);
    return base::InvalidArgumentError(
        fmt::format("ambiguous flag '{}'; it may mean one of:{}", argument, list));
  }
  if (std::ranges::find(candidates, name) != candidates.end()) {
    return base::InvalidArgumentError(fmt::format("flag '{}' takes no value", argument));
  }
  if (const std::string_view nearest = NearestFlag(name); !nearest.empty()) {
    return base::InvalidArgumentError(
        fmt::format("unknown flag '{}'; did you mean '--{}'?", argument, nearest));
  }
  return base::InvalidArgumentError(
      fmt::format("unknown flag '{}'; --help lists all flags", argument));
}

// Returns `status` for a flag's value, prefixed with the flag and the value unless the text names
// the flag.
base::Status RefusedValue(const Flag& flag, std::string_view value, const base::Status& status) {
  const std::string_view text = status.message();
  if (text.starts_with("Error: ") || text.starts_with(fmt::format("--{} ", flag.name)))
    return status;
  return status.WithPrefix(flag.is_secret ? fmt::format("--{}: ", flag.name)
                                          : fmt::format("--{} '{}': ", flag.name, value));
}

// The error for an argument that belongs to no flag.
base::Status RefusedArgument(std::string_view argument) {
  std::error_code ignored;
  return base::InvalidArgumentError(fmt::format(
      "unexpected argument '{}'{}", argument,
      std::filesystem::is_directory(argument, ignored)
          ? fmt::format("; each model repository is given as --model-repository={}", argument)
          : "; --help lists all flags"));
}

bool IsNumericAddress(const std::string& text) {
  in6_addr any{};
  return ::inet_pton(AF_INET, text.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &any) == 1;
}

// One listening server.
struct Endpoint {
  const char* name;
  bool is_used;
  std::string address;
  int32_t port;
  bool is_sagemaker = false;

  // The flag for the port.
  std::string flag() const {
    std::string text;
    for (const char c : std::string_view(name)) {
      text += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return "--" + text + "-port";
  }
};

std::vector<Endpoint> EndpointsOf(const Options& options) {
  return {
      {"HTTP", options.http.is_allowed, options.http.address, options.http.port},
      {"GRPC", options.grpc.is_allowed, options.grpc.address, options.grpc.port},
      {"metrics", options.metrics.is_allowed, MetricsAddress(options), options.metrics.port},
      {"admin", options.access.has_admin_listener(), AdminAddress(options), AdminPort(options)},
      {"admin GRPC", options.access.admin_grpc_port.has_value(), AdminAddress(options),
       options.access.admin_grpc_port.value_or(0)},
      {"SageMaker", options.cloud.sagemaker.is_allowed, options.cloud.sagemaker.address,
       options.cloud.sagemaker.port, true},
      {"Vertex AI", options.cloud.vertex_ai.is_allowed, options.cloud.vertex_ai.address,
       options.cloud.vertex_ai.port},
  };
}

// SageMaker says which ports others may use at its address.
base::Status CheckSafePorts(const Options& options, std::span<const Endpoint> endpoints) {
  if (!options.cloud.sagemaker.is_allowed || !options.cloud.safe_ports) return base::OkStatus();
  const auto [min, max] = *options.cloud.safe_ports;
  for (const Endpoint& other : endpoints) {
    if (!other.is_used || other.is_sagemaker) continue;
    if (other.address == options.cloud.sagemaker.address &&
        (other.port < min || other.port > max)) {
      return base::InvalidArgumentError(
          fmt::format("The server cannot listen to {} requests at port {}, allowed port range is "
                      "[{}, {}]",
                      other.name, other.port, min, max));
    }
  }
  return base::OkStatus();
}

base::Status CheckPorts(const Options& options) {
  const std::vector<Endpoint> endpoints = EndpointsOf(options);
  NEREID_RETURN_IF_ERROR(CheckSafePorts(options, endpoints));
  for (const Endpoint& a : endpoints) {
    if (!a.is_used) continue;
    if (a.port < 0 || a.port > 65'535) {
      return base::InvalidArgumentError(
          fmt::format("{} '{}': {}", a.flag(), a.port, kExpectedPort));
    }
    const bool is_path = a.address.starts_with(base::kUnixPrefix);
    for (const Endpoint& b : endpoints) {
      if (&a >= &b || !b.is_used || a.address != b.address) continue;
      if (is_path) {
        return base::InvalidArgumentError(fmt::format(
            "the server cannot listen to {} requests and {} requests at the same path {}", a.name,
            b.name, a.address));
      }
      if (a.port == b.port && a.port != 0) {
        return base::InvalidArgumentError(fmt::format(
            "the server cannot listen to {} requests and {} requests at the same address and port "
            "{}:{}",
            a.name, b.name, a.address, a.port));
      }
    }
  }
  return base::OkStatus();
}

// Incomplete TLS settings are an error; the server must not silently serve without TLS.
base::Status CheckSsl(std::string_view protocol, const SslOptions& ssl) {
  if (!ssl.is_used && !ssl.is_mutual) return base::OkStatus();
  if (ssl.server_cert.empty() || ssl.server_key.empty()) {
    return base::InvalidArgumentError(
        fmt::format("--{0}-use-ssl needs --{0}-server-cert and --{0}-server-key", protocol));
  }
  if (ssl.is_mutual && ssl.root_cert.empty()) {
    return base::InvalidArgumentError(
        fmt::format("--{0}-use-ssl-mutual needs --{0}-root-cert", protocol));
  }
  return base::OkStatus();
}

// Combines Triton's flags of several generations. Error texts follow
// server/src/command_line_parser.cc.
base::Status FinishControl(Options& options) {
  engine::ModelControlOptions& control = options.engine.control;
  if (!options.has_control_mode) {
    if (options.allows_polling && options.allows_control) {
      return base::InvalidArgumentError("cannot enable both polling and explicit model control");
    }
    if (options.allows_polling) control.mode = engine::ControlMode::kPoll;
    if (options.allows_control) control.mode = engine::ControlMode::kExplicit;
  }
  if (!control.startup_models.empty() && control.mode != engine::ControlMode::kExplicit &&
      control.mode != engine::ControlMode::kOnDemand) {
    return base::InvalidArgumentError(
        "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.");
  }
  return CheckOnDemand(options);
}

// Without keys, any client that reaches the admin listener can do anything, so only this machine
// may reach it.
base::Status CheckAdmin(const Options& options) {
  if (!options.access.has_admin_listener()) return base::OkStatus();
  const std::string address = AdminAddress(options);
  if (options.access.admin_grpc_port && address.starts_with(base::kUnixPrefix)) {
    return base::InvalidArgumentError(fmt::format(
        "--admin-grpc-port: the Unix socket '{}' serves HTTP only; expected an --admin-address "
        "with ports",
        address));
  }
  if (!options.access.keys_file.empty()) return base::OkStatus();
  if (IsLocalAddress(address)) return base::OkStatus();
  return base::InvalidArgumentError(fmt::format(
      "--admin-address '{}': without --api-keys everybody who can connect could load models; "
      "expected 127.0.0.1, ::1 or unix:<path>",
      address));
}

// What an operator who comes from Triton should know about.
void NoteOpenControl(Options& options) {
  const engine::ControlMode mode = options.engine.control.mode;
  const bool loads_by_name =
      mode == engine::ControlMode::kExplicit || mode == engine::ControlMode::kOnDemand;
  if (!loads_by_name || !options.access.control_is_on_main()) return;
  if (!options.access.keys_file.empty()) return;
  const auto is_open = [](bool is_allowed, const std::string& address, const SslOptions& ssl,
                          const common::Restrictions& restrictions) {
    return is_allowed && !IsLocalAddress(address) && !ssl.is_mutual &&
           !restrictions.IsRestricted(common::Category::kModelRepository);
  };
  const HttpOptions& http = options.http;
  const GrpcOptions& grpc = options.grpc;
  if (is_open(http.is_allowed, http.address, http.ssl, http.restrictions) ||
      is_open(grpc.is_allowed, grpc.address, grpc.ssl, grpc.restrictions)) {
    options.warnings.emplace_back(
        "as in Triton, everybody who can connect may load models, which is running code; "
        "--api-keys asks who they are, and --admin-port moves loading to a port of its own");
  }
}

base::Status Finish(Options& options) {
  if (options.wants_help || options.wants_version) return base::OkStatus();
  if (options.engine.repository.repositories.empty() && !options.cloud.storage.empty()) {
    options.engine.repository.repositories.push_back(options.cloud.storage);
  }
  if (options.engine.repository.repositories.empty()) {
    return base::InvalidArgumentError(
        "--model-repository must be given at least once; --help lists all flags");
  }
  NEREID_RETURN_IF_ERROR(FinishControl(options));
  options.engine.metrics.is_allowed = options.metrics.is_allowed;
  NEREID_RETURN_IF_ERROR(FinishTraceFlags(options));
  // Texts here and below follow Triton's server/src/command_line_parser.cc.
  bool& disable_auto_complete = options.engine.repository.disable_auto_complete;
  if (disable_auto_complete && options.strict_model_config == false) {
    options.warnings.emplace_back(
        "Warning: Overriding deprecated '--strict-model-config' from False to True in favor of "
        "'--disable-auto-complete-config'!");
  }
  disable_auto_complete |= options.strict_model_config.value_or(false);
  options.engine.backends.auto_complete_config = !options.engine.repository.disable_auto_complete;
  if (options.has_cache_config && options.has_cache_byte_size) {
    return base::InvalidArgumentError(
        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. "
        "Please provide one or the other.");
  }
  if (options.engine.cache.directory.empty()) {
    options.engine.cache.directory =
        engine::DefaultDirectoryBeside(options.engine.backends.backend_directory, "caches");
  }
  if (options.engine.agent_directory.empty()) {
    options.engine.agent_directory =
        engine::DefaultDirectoryBeside(options.engine.backends.backend_directory, "repoagents");
  }
  NEREID_RETURN_IF_ERROR(CheckSsl("http", options.http.ssl));
  NEREID_RETURN_IF_ERROR(CheckSsl("grpc", options.grpc.ssl));
  NEREID_RETURN_IF_ERROR(CheckAdmin(options));
  NoteOpenControl(options);
  return CheckPorts(options);
}

}  // namespace

std::string MetricsAddress(const Options& options) {
  if (!options.metrics.address.empty()) return options.metrics.address;
  if (options.http.address.starts_with(base::kUnixPrefix)) return "127.0.0.1";
  // If the service is disabled, its address need not be valid.
  const bool has_meaning = options.http.is_allowed || IsNumericAddress(options.http.address);
  return has_meaning ? options.http.address : "0.0.0.0";
}

std::string AdminAddress(const Options& options) {
  return options.access.admin_address.value_or("127.0.0.1");
}

int32_t AdminPort(const Options& options) { return options.access.admin_port.value_or(8003); }

bool IsLocalAddress(std::string_view address) {
  if (address.starts_with(base::kUnixPrefix)) return true;
  for (const std::string_view kind : {"ipv4:", "ipv6:"}) {
    if (address.starts_with(kind)) address.remove_prefix(kind.size());
  }
  return address.starts_with("127.") || address == "::1" || address == "[::1]";
}

base::Result<Options> ParseCommandLine(int argc, char** argv) {
  const std::vector<const Flag*> flags = FlatFlags();
  std::vector<option> table;
  // Each flag has its own number, larger than any character. Without that, getopt_long would not
  // recognise an ambiguous prefix and choose the first flag.
  constexpr int kFirstKind = 256;
  for (const Flag* flag : flags) {
    table.push_back({flag->name.data(), flag->value.empty() ? no_argument : required_argument,
                     nullptr, kFirstKind + static_cast<int>(table.size())});
  }
  table.push_back({nullptr, 0, nullptr, 0});
  Options options;
  NEREID_ASSIGN_OR_RETURN(CloudEnvironment cloud, ReadCloudEnvironment());
  options.cloud = std::move(cloud.options);
  if (cloud.is_vertex_ai) options.http.is_allowed = options.grpc.is_allowed = false;
  options.engine.backends.backend_directory = engine::DefaultBackendDirectory();
  // Servers inside other programs have none, because it interrupts threads by a signal.
  options.engine.watchdog_limit = std::chrono::seconds(30);
  options.engine.generation_interval = std::chrono::milliseconds(500);
  opterr = 0;
  optind = 0;
  while (true) {
    const int at = optind == 0 ? 1 : optind;
    const int kind = getopt_long(argc, argv, "+:", table.data(), nullptr);
    if (kind == -1) break;
    if (kind < kFirstKind) return RefusedFlag(kind, argv[at]);
    const Flag& flag = *flags[static_cast<size_t>(kind - kFirstKind)];
    const std::string_view value = optarg != nullptr ? optarg : "";
    if (const base::Status status = flag.apply(value, options); !status.ok()) {
      return RefusedValue(flag, value, status);
    }
  }
  if (optind < argc) return RefusedArgument(argv[optind]);
  NEREID_RETURN_IF_ERROR(Finish(options));
  return options;
}

std::string Usage(std::string_view program) {
  std::string text = fmt::format("Usage: {} --model-repository <folder> [flags]\n", program);
  for (const FlagGroup& group : AllFlags()) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Flag& flag : group.flags) {
      text += fmt::format("  --{}{}{}\n        {}\n", flag.name, flag.value.empty() ? "" : " ",
                          flag.value, flag.help);
    }
  }
  return text;
}

}  // namespace nereid::app
