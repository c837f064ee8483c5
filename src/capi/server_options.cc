// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_ServerOptions*. Texts and defaults: core/src/tritonserver.cc of Triton. The options
// about the log, which belongs to the process, are in server_options_log.cc.
#include "capi/server_options.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "abi_objects/error.h"
#include "base/log.h"
#include "engine/directories.h"
#include "nereid/on_demand.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;
using nereid::engine::ControlMode;

TRITONSERVER_ServerOptions::TRITONSERVER_ServerOptions() {
  engine.control.mode = ControlMode::kPoll;
  // Embedders poll by TRITONSERVER_ServerPollModelRepository.
  engine.poll_interval = std::chrono::seconds(0);
  engine.repository.disable_auto_complete = true;
  engine.backends.backend_directory = nereid::engine::DefaultBackendDirectory();
}

nereid::engine::EngineOptions TRITONSERVER_ServerOptions::ToEngineOptions() const {
  nereid::engine::EngineOptions options = engine;
  options.repository.repositories.assign(repositories.begin(), repositories.end());
  options.backends.auto_complete_config = !options.repository.disable_auto_complete;
  const std::string& backends = options.backends.backend_directory;
  if (options.agent_directory.empty()) {
    options.agent_directory = nereid::engine::DefaultDirectoryBeside(backends, "repoagents");
  }
  if (options.cache.directory.empty()) {
    options.cache.directory = nereid::engine::DefaultDirectoryBeside(backends, "caches");
  }
  return options;
}

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions** options) {
  return RunApiCall([&]() -> Status {
    *options = nullptr;
    *options = new TRITONSERVER_ServerOptions;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions* options) {
  delete options;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions* options,
                                                          const char* server_id) {
  return RunApiCall([&]() -> Status {
    options->engine.server_id = server_id;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    TRITONSERVER_ServerOptions* options, const char* model_repository_path) {
  return RunApiCall([&]() -> Status {
    options->repositories.insert(model_repository_path);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelControlMode(
    TRITONSERVER_ServerOptions* options, TRITONSERVER_ModelControlMode mode) {
  const int number = mode;  // callers in C may pass any number
  return RunApiCall([&]() -> Status {
    switch (number) {
      case TRITONSERVER_MODEL_CONTROL_NONE:
        options->engine.control.mode = ControlMode::kNone;
        return {};
      case TRITONSERVER_MODEL_CONTROL_POLL:
        options->engine.control.mode = ControlMode::kPoll;
        return {};
      case TRITONSERVER_MODEL_CONTROL_EXPLICIT:
        options->engine.control.mode = ControlMode::kExplicit;
        return {};
      default:
        return InvalidArgumentError(fmt::format("unknown control mode '{}'", number));
    }
  });
}

TRITONSERVER_Error* NEREIDSERVER_ServerOptionsSetOnDemand(
    TRITONSERVER_ServerOptions* options, const NEREIDSERVER_OnDemandSettings* settings) {
  return RunApiCall([&]() -> Status {
    if (settings->size < sizeof(NEREIDSERVER_OnDemandSettings)) {
      return InvalidArgumentError(
          fmt::format("unexpected size {} of NEREIDSERVER_OnDemandSettings, expected at least {}",
                      settings->size, sizeof(NEREIDSERVER_OnDemandSettings)));
    }
    if (settings->load_wait_secs == 0) {
      return InvalidArgumentError("unexpected load_wait_secs 0, expected at least 1");
    }
    nereid::engine::OnDemandOptions& on_demand = options->engine.on_demand;
    on_demand.memory_budget = settings->memory_budget;
    on_demand.gpu_memory_budget = settings->gpu_memory_budget;
    on_demand.load_wait = std::chrono::seconds(settings->load_wait_secs);
    on_demand.min_stay = std::chrono::seconds(settings->min_stay_secs);
    on_demand.idle_unload = std::chrono::seconds(settings->idle_secs);
    on_demand.pinned = {settings->pinned, settings->pinned + settings->pinned_count};
    options->engine.control.mode = ControlMode::kOnDemand;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions* options,
                                                              const char* model_name) {
  return RunApiCall([&]() -> Status {
    options->engine.control.startup_models.insert(model_name);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictModelConfig(
    TRITONSERVER_ServerOptions* options, bool strict) {
  options->engine.repository.disable_auto_complete = strict;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelConfigName(
    TRITONSERVER_ServerOptions* options, const char* model_config_name) {
  return RunApiCall([&]() -> Status {
    options->engine.repository.model_config_name = model_config_name;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRateLimiterMode(
    TRITONSERVER_ServerOptions* options, TRITONSERVER_RateLimitMode mode) {
  const int number = mode;  // callers in C may pass any number
  return RunApiCall([&]() -> Status {
    switch (number) {
      case TRITONSERVER_RATE_LIMIT_EXEC_COUNT:
        options->engine.limits_rate = true;
        return {};
      case TRITONSERVER_RATE_LIMIT_OFF:
        options->engine.limits_rate = false;
        return {};
      default:
        return InvalidArgumentError(fmt::format("unknown rate limit mode '{}'", number));
    }
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsAddRateLimiterResource(
    TRITONSERVER_ServerOptions* options, const char* resource_name, const size_t resource_count,
    const int device) {
  return RunApiCall([&]() -> Status {
    // The smallest of several counts applies.
    size_t& count = options->engine.rate_limits[device]
                        .try_emplace(resource_name, resource_count)
                        .first->second;
    count = std::min(count, resource_count);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
    TRITONSERVER_ServerOptions* options, uint64_t size) {
  options->engine.gpus.pinned_pool_bytes = size;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
    TRITONSERVER_ServerOptions* options, int gpu_device, uint64_t size) {
  return RunApiCall([&]() -> Status {
    options->engine.gpus.gpu_pool_bytes_by_device[gpu_device] = size;
    return {};
  });
}

// No memory that grows is kept on GPUs.
TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(TRITONSERVER_ServerOptions*,
                                                                        int, size_t) {
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    TRITONSERVER_ServerOptions* options, bool enable_peer_access) {
  options->engine.gpus.enables_peer_access = enable_peer_access;
  return nullptr;
}

// This server has no threads for buffers.
TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(
    TRITONSERVER_ServerOptions*, unsigned int) {
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
    TRITONSERVER_ServerOptions* options, uint64_t size) {
  if (size == 0) return nullptr;
  return RunApiCall([&]() -> Status {
    options->engine.cache.json["local"] = fmt::format("{{\"size\": {}}}", size);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions* options,
                                                             const char* cache_name,
                                                             const char* config_json) {
  return RunApiCall([&]() -> Status {
    options->engine.cache.json[cache_name] = config_json;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions* options,
                                                                const char* cache_dir) {
  return RunApiCall([&]() -> Status {
    options->engine.cache.directory = cache_dir;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    TRITONSERVER_ServerOptions* options, double cc) {
  options->engine.backends.min_compute_capability = cc;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions* options,
                                                             bool exit) {
  options->engine.exit_on_error = exit;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictReadiness(
    TRITONSERVER_ServerOptions* options, bool strict) {
  options->engine.strict_readiness = strict;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions* options,
                                                             unsigned int timeout) {
  options->exit_timeout = std::chrono::seconds(timeout);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
    TRITONSERVER_ServerOptions* options, unsigned int thread_count) {
  options->engine.model_load_threads = std::max(thread_count, 1u);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    TRITONSERVER_ServerOptions* options, unsigned int retry_count) {
  options->engine.model_load_retries = retry_count;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelNamespacing(
    TRITONSERVER_ServerOptions* options, bool enable_namespace) {
  options->engine.repository.has_namespaces = enable_namespace;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions* options,
                                                         bool metrics) {
  options->engine.metrics.is_allowed = metrics;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions* options,
                                                            bool gpu_metrics) {
  options->engine.metrics.has_gpu = gpu_metrics;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions* options,
                                                            bool cpu_metrics) {
  options->engine.metrics.has_cpu = cpu_metrics;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsInterval(
    TRITONSERVER_ServerOptions* options, uint64_t metrics_interval_ms) {
  options->engine.metrics.interval = std::chrono::milliseconds(metrics_interval_ms);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions* options,
                                                               const char* /*name*/,
                                                               const char* setting,
                                                               const char* value) {
  return RunApiCall([&]() -> Status {
    const auto warning =
        nereid::engine::ApplyMetricsSetting(setting, value, options->engine.metrics);
    if (warning) NEREID_LOG(kWarning, "{}", *warning);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendDirectory(
    TRITONSERVER_ServerOptions* options, const char* backend_dir) {
  return RunApiCall([&]() -> Status {
    options->engine.backends.backend_directory = backend_dir;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    TRITONSERVER_ServerOptions* options, const char* repoagent_dir) {
  return RunApiCall([&]() -> Status {
    options->engine.agent_directory = repoagent_dir;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    TRITONSERVER_ServerOptions* options, const TRITONSERVER_InstanceGroupKind kind,
    const int device_id, const double fraction) {
  return RunApiCall([&]() -> Status {
    if (device_id < 0) {
      return InvalidArgumentError(fmt::format("expects device ID >= 0, got {}", device_id));
    }
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
      return InvalidArgumentError(
          fmt::format("expects limit fraction to be in range [0.0, 1.0], got {:f}", fraction));
    }
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
      return InvalidArgumentError(std::string("given device kind is not supported, got: ") +
                                  TRITONSERVER_InstanceGroupKindString(kind));
    }
    options->engine.backends
        .backend_settings[""][fmt::format("model-load-gpu-limit-device-{}", device_id)] =
        fmt::format("{:f}", fraction);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions* options,
                                                               const char* backend_name,
                                                               const char* setting,
                                                               const char* value) {
  return RunApiCall([&]() -> Status {
    options->engine.backends.backend_settings[backend_name][setting] = value;
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions* options,
                                                            const char* policy_name,
                                                            const char* setting,
                                                            const char* value) {
  return RunApiCall([&]() -> Status {
    const std::string name = setting;
    if (name != "numa-node" && name != "cpu-cores") {
      return nereid::base::UnsupportedError(
          "Unsupported host policy setting '" + name +
          "' is specified, supported settings are 'numa-node', 'cpu-cores'");
    }
    options->engine.backends.host_policies[policy_name][name] = value;
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
