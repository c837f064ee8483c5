// SPDX-License-Identifier: Apache-2.0
// Names, defaults and meanings follow Triton's server/src/command_line_parser.cc.
#include "app/backend_flags.h"

#include <strings.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "app/flag_setters.h"
#include "app/flag_values.h"

namespace nereid::app {
namespace {

using base::InvalidArgumentError;
using base::OkStatus;
using base::Status;

// Applies <backend>,<setting>=<value>, or <setting>=<value> for all backends.
Status AddBackendConfig(std::string_view value, Options& options) {
  const size_t comma = value.find(',');
  const std::string backend(comma == std::string_view::npos ? "" : value.substr(0, comma));
  const auto setting =
      ReadPair(comma == std::string_view::npos ? value : value.substr(comma + 1), '=');
  if (!setting.ok() || setting->second.empty() ||
      (comma != std::string_view::npos && backend.empty())) {
    return InvalidArgumentError(
        fmt::format("--backend-config option format is '<backend name>,<setting>=<value>' or "
                    "'<setting>=<value>'. Got {}",
                    value));
  }
  options.engine.backends.backend_settings[backend][setting->first] = setting->second;
  return OkStatus();
}

// Applies <name>,<setting>=<value>.
Status AddHostPolicy(std::string_view value, Options& options) {
  const auto policy = ReadPair(value, ',');
  const auto setting = policy.ok()
                           ? ReadPair(policy->second, '=')
                           : base::Result<std::pair<std::string, std::string>>(policy.status());
  if (!setting.ok()) {
    return InvalidArgumentError(fmt::format(
        "--host-policy option format is '<policy name>,<setting>=<value>'. Got {}", value));
  }
  options.engine.backends.host_policies[policy->first][setting->first] = setting->second;
  return OkStatus();
}

// Applies <cache>,<setting>=<value>.
Status AddCacheConfig(std::string_view value, Options& options) {
  const auto cache = ReadPair(value, ',');
  if (!cache.ok()) {
    return InvalidArgumentError(
        fmt::format("No cache specified. --cache-config option format is "
                    "<cache name>,<setting>=<value>. Got {}",
                    value));
  }
  const auto setting = ReadPair(cache->second, '=');
  if (!setting.ok() || setting->second.empty()) {
    return InvalidArgumentError(fmt::format(
        "--cache-config option format is '<cache name>,<setting>=<value>'. Got {}", value));
  }
  options.has_cache_config = true;
  options.engine.cache.settings[cache->first][setting->first] = setting->second;
  return OkStatus();
}

Status SetCacheByteSize(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t bytes,
                          ReadInteger(value, std::numeric_limits<int64_t>::min()));
  options.has_cache_byte_size = true;
  options.engine.cache.settings["local"]["size"] = std::to_string(bytes);
  options.warnings.push_back(
      fmt::format("'--response-cache-byte-size' has been deprecated, use "
                  "'--cache-config=local,size={}' instead",
                  bytes));
  return OkStatus();
}

Status SetComputeCapability(std::string_view value, Options& options) {
  double capability = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), capability);
  if (error != std::errc() || end != value.data() + value.size() || capability < 0) {
    return InvalidArgumentError("expected a compute capability such as 6.0");
  }
  options.engine.backends.min_compute_capability = capability;
  return OkStatus();
}

Status SetRateLimit(std::string_view value, Options& options) {
  static constexpr std::string_view kModes[] = {"off", "execution_count"};
  NEREID_ASSIGN_OR_RETURN(const size_t mode, ReadChoice(value, kModes));
  options.engine.limits_rate = mode == 1;
  return OkStatus();
}

// Applies <device>:<fraction of its memory>.
Status SetGpuLimit(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const auto pair, ReadPair(value, ':'));
  NEREID_ASSIGN_OR_RETURN(const int64_t device,
                          ReadInteger(pair.first, std::numeric_limits<int32_t>::min(), kIntMax));
  double fraction = 0;
  const char* const end = pair.second.data() + pair.second.size();
  const auto read = std::from_chars(pair.second.data(), end, fraction);
  if (read.ec != std::errc() || read.ptr != end) {
    return InvalidArgumentError("expected <device>:<fraction>, got " + std::string(value));
  }
  if (device < 0) {
    return InvalidArgumentError("setting model load GPU limit: expects device ID >= 0, got " +
                                pair.first);
  }
  if (!(fraction >= 0 && fraction <= 1)) {
    return InvalidArgumentError(
        "setting model load GPU limit: expects limit fraction to be in range [0.0, 1.0], got " +
        std::to_string(fraction));
  }
  options.engine.backends
      .backend_settings[""]["model-load-gpu-limit-device-" + std::to_string(device)] =
      std::to_string(fraction);
  return OkStatus();
}

// Applies <device>:<bytes>.
Status SetGpuPool(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const auto pair, ReadPair(value, ':'));
  NEREID_ASSIGN_OR_RETURN(const int64_t device, ReadInteger(pair.first, 0, kIntMax));
  NEREID_ASSIGN_OR_RETURN(const int64_t bytes,
                          ReadInteger(pair.second, 0, std::numeric_limits<int64_t>::max()));
  options.engine.gpus.gpu_pool_bytes_by_device[static_cast<int32_t>(device)] =
      static_cast<uint64_t>(bytes);
  return OkStatus();
}

// Applies <name>:<count>, <name>:<count>:<device> or <name>:<count>:global. The name is the one
// that models use.
Status AddRateLimitResource(std::string_view value, Options& options) {
  const std::string text(value);
  const auto wrong = [&] {
    return InvalidArgumentError(
        "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or "
        "'<resource_name>:<count>'. Got " +
        text);
  };
  const size_t first = text.find(':');
  if (first == std::string::npos) return wrong();
  const size_t second = text.find(':', first + 1);
  const auto count =
      ReadInteger(std::string_view(text).substr(
                      first + 1, second == std::string::npos ? second : second - first - 1),
                  0, kIntMax);
  if (!count.ok()) return wrong();
  int32_t device = schedule::kEachDeviceResource;
  if (second != std::string::npos) {
    const std::string name = text.substr(second + 1);
    const auto number = ReadInteger(name, 0, kIntMax);
    if (!number.ok() && strcasecmp(name.c_str(), "global") != 0) return wrong();
    device = number.ok() ? static_cast<int32_t>(*number) : schedule::kGlobalResource;
  }
  options.engine.rate_limits[device][text.substr(0, first)] = static_cast<size_t>(*count);
  return OkStatus();
}

Status SetInlineBudget(std::string_view value, Options& options) {
  NEREID_ASSIGN_OR_RETURN(const int64_t us, ReadInteger(value, 0, 1'000'000));
  options.engine.inline_budget = std::chrono::microseconds(us);
  return OkStatus();
}

#define FIELD(path) +[](Options& o) -> auto& { return o.path; }

constexpr Flag kBackends[] = {
    {"backend-directory", kString,
     "Folder of the backends (that of this installation, or /opt/tritonserver/backends).",
     SetString<FIELD(engine.backends.backend_directory)>},
    {"backend-config", "<string>,<string>=<string>",
     "A setting of one backend, or <setting>=<value> for all backends.", AddBackendConfig},
    {"inline-exec-budget-us", kInteger,
     "Backends that allow it run on the thread that received the request if executions take no "
     "longer than this on average; 0: never (50).",
     SetInlineBudget},
    {"adaptive-concurrency", kBool,
     "Limit the requests of each model that wait or execute by how fast it is, unless its "
     "parameter "
     "adaptive_concurrency says otherwise (false).",
     SetBool<FIELD(engine.adapts_concurrency)>},
    {"host-policy", "<string>,<string>=<string>", "A setting of a host policy.", AddHostPolicy},
    {"min-supported-compute-capability", "<float>",
     "Minimum compute capability of a GPU that is used.", SetComputeCapability},
    {"pinned-memory-pool-byte-size", kInteger,
     "Bytes of host memory that are pinned for backends when an instance runs on a GPU; 0: none "
     "(268435456).",
     SetInteger<FIELD(engine.gpus.pinned_pool_bytes), 0, std::numeric_limits<int64_t>::max()>},
    {"cuda-memory-pool-byte-size", "<integer>:<integer>",
     "<device>:<bytes> of a GPU's memory that are reserved for backends and for copies of clients' "
     "tensors when an instance runs there; 0: none (67108864).",
     SetGpuPool},
    {"cuda-virtual-address-size", "<integer>:<integer>",
     "Accepted for compatibility; no memory on GPUs grows.", Ignore},
    {"buffer-manager-thread-count", kInteger, "Accepted for compatibility.", IgnoreInteger},
    {"model-load-gpu-limit", "<device>:<fraction>",
     "No instance is made on a GPU of whose memory more than this share is in use.", SetGpuLimit},
    {"repoagent-directory", kString,
     "Folder of the repository agents (repoagents beside the backends, or "
     "/opt/tritonserver/repoagents).",
     SetString<FIELD(engine.agent_directory)>},
    {"cache-directory", kString,
     "Folder of the cache libraries (caches beside the backends, or /opt/tritonserver/caches).",
     SetString<FIELD(engine.cache.directory)>},
    {"cache-config", "<string>,<string>=<string>",
     "A setting of the response cache, such as local,size=1048576.", AddCacheConfig},
    {"response-cache-byte-size", kInteger, "Deprecated: --cache-config=local,size=<integer>.",
     SetCacheByteSize},
    {"rate-limit", kString,
     "Whether instances share limited resources: off or execution_count (off).", SetRateLimit},
    {"rate-limit-resource", "<string>:<integer>[:<integer>]",
     "<resource>:<count>[:<device>]: how many there are of a resource on a device; without a "
     "device, on each device; with 'global' as the device, in all.",
     AddRateLimitResource},
    {"allow-client-shm", kBool, "Let clients register shared memory (false).",
     SetBool<FIELD(engine.allows_client_regions)>},
    {"trust-shared-memory", kBool,
     "Let all models read and write clients' shared memory in place, although a client can harm "
     "the server by changing the memory meanwhile (false).",
     SetBool<FIELD(engine.trusts_client_regions)>},
};

#undef FIELD

}  // namespace

std::span<const Flag> BackendFlags() { return kBackends; }

}  // namespace nereid::app
