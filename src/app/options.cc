// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <arpa/inet.h>
#include <getopt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/core.h>

#include "app/flag_values.h"
#include "app/flags.h"
#include "app/trace_flags.h"
#include "base/nearest_name.h"
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

base::Status CheckPorts(const Options& options) {
  // One listening server.
  struct Endpoint {
    const char* name;
    bool is_used;
    const std::string& address;
    int32_t port;
    bool is_sagemaker = false;
  };
  const std::string metrics_address = MetricsAddress(options);
  const Endpoint endpoints[] = {
      {"HTTP", options.http.is_allowed, options.http.address, options.http.port},
      {"GRPC", options.grpc.is_allowed, options.grpc.address, options.grpc.port},
      {"metrics", options.metrics.is_allowed, metrics_address, options.metrics.port},
      {"SageMaker", options.cloud.sagemaker.is_allowed, options.cloud.sagemaker.address,
       options.cloud.sagemaker.port, true},
      {"Vertex AI", options.cloud.vertex_ai.is_allowed, options.cloud.vertex_ai.address,
       options.cloud.vertex_ai.port},
  };
  if (options.cloud.sagemaker.is_allowed && options.cloud.safe_ports) {
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
  }
  for (const Endpoint& a : endpoints) {
    if (a.is_used && (a.port < 0 || a.port > 65'535)) {
      std::string flag(a.name);
      for (char& c : flag) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return base::InvalidArgumentError(
          fmt::format("--{}-port '{}': {}", flag, a.port, kExpectedPort));
    }
    for (const Endpoint& b : endpoints) {
      const bool is_path = a.address.starts_with("unix:");
      if (&a < &b && a.is_used && b.is_used && a.address == b.address && is_path) {
        return base::InvalidArgumentError(fmt::format(
            "the server cannot listen to {} requests and {} requests at the same path {}", a.name,
            b.name, a.address));
      }
      if (&a < &b && a.is_used && b.is_used && a.port == b.port && a.port != 0 &&
          a.address == b.address) {
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
  if (!control.startup_models.empty() && control.mode != engine::ControlMode::kExplicit) {
    return base::InvalidArgumentError(
        "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.");
  }
  return base::OkStatus();
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
  return CheckPorts(options);
}

}  // namespace

std::string MetricsAddress(const Options& options) {
  if (!options.metrics.address.empty()) return options.metrics.address;
  if (options.http.address.starts_with("unix:")) return "127.0.0.1";
  // If the service is disabled, its address need not be valid.
  const bool has_meaning = options.http.is_allowed || IsNumericAddress(options.http.address);
  return has_meaning ? options.http.address : "0.0.0.0";
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
