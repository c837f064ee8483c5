// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <getopt.h>

#include <filesystem>

#include <fmt/core.h>

#include "app/flags.h"

namespace nereid::app {
namespace {

std::vector<const Flag*> FlatFlags() {
  std::vector<const Flag*> flags;
  for (const FlagGroup& group : AllFlags()) {
    for (const Flag& flag : group.flags) flags.push_back(&flag);
  }
  return flags;
}

// What getopt_long refused, in one line.
base::Status RefusedFlag(int kind, const char* argument) {
  return base::InvalidArgumentError(
      kind == ':' ? fmt::format("flag '{}' needs a value", argument)
                  : fmt::format("unknown or ambiguous flag '{}'; --help lists all flags", argument));
}

base::Status CheckPorts(const Options& options) {
  struct Endpoint {
    const char* name;
    bool is_used;
    const std::string& address;
    uint16_t port;
  };
  const std::string& metrics_address =
      options.metrics.address.empty() ? options.http.address : options.metrics.address;
  const Endpoint endpoints[] = {
      {"HTTP", options.http.is_allowed, options.http.address, options.http.port},
      {"GRPC", options.grpc.is_allowed, options.grpc.address, options.grpc.port},
      {"metrics", options.metrics.is_allowed, metrics_address, options.metrics.port},
  };
  for (const Endpoint& a : endpoints) {
    for (const Endpoint& b : endpoints) {
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

// Caches lie beside the backends, as Triton's do by default.
std::string DefaultCacheDirectory(const std::string& backend_directory) {
  std::error_code error;
  const std::filesystem::path beside =
      (std::filesystem::path(backend_directory) / "").parent_path().parent_path() / "caches";
  return std::filesystem::is_directory(beside, error) ? beside.string() : "/opt/tritonserver/caches";
}

base::Status Finish(Options& options) {
  if (options.wants_help || options.wants_version) return base::OkStatus();
  if (options.engine.repository.repositories.empty()) {
    return base::InvalidArgumentError("--model-repository must be given at least once");
  }
  options.engine.backends.auto_complete_config = !options.engine.repository.disable_auto_complete;
  // Text: server/src/command_line_parser.cc.
  if (options.has_cache_config && options.has_cache_byte_size) {
    return base::InvalidArgumentError(
        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. "
        "Please provide one or the other.");
  }
  if (options.engine.cache.directory.empty()) {
    options.engine.cache.directory =
        DefaultCacheDirectory(options.engine.backends.backend_directory);
  }
  return CheckPorts(options);
}

}  // namespace

base::Result<Options> ParseCommandLine(int argc, char** argv) {
  const std::vector<const Flag*> flags = FlatFlags();
  std::vector<option> table;
  for (const Flag* flag : flags) {
    table.push_back({flag->name.data(), flag->value.empty() ? no_argument : required_argument,
                     nullptr, 0});
  }
  table.push_back({nullptr, 0, nullptr, 0});
  Options options;
  options.engine.backends.backend_directory = "/opt/tritonserver/backends";
  opterr = 0;
  optind = 0;
  while (true) {
    int index = -1;
    const int at = optind == 0 ? 1 : optind;
    const int kind = getopt_long(argc, argv, "+:", table.data(), &index);
    if (kind == -1) break;
    if (kind != 0 || index < 0) return RefusedFlag(kind, argv[at]);
    const Flag& flag = *flags[static_cast<size_t>(index)];
    const std::string_view value = optarg != nullptr ? optarg : "";
    if (const base::Status status = flag.apply(value, options); !status.ok()) {
      return base::Status(status.code(),
                          fmt::format("--{} {}: {}", flag.name, value, status.message()));
    }
  }
  if (optind < argc) {
    return base::InvalidArgumentError(fmt::format("unexpected argument '{}'", argv[optind]));
  }
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
