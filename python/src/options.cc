// SPDX-License-Identifier: Apache-2.0
// _core.ServerOptions: one method for each function that sets an option; the Python code decides
// which to call.
#include <cstdint>
#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "errors.h"
#include "server.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

// Owns the options of a server.
class ServerOptions {
 public:
  ServerOptions() { Check(TRITONSERVER_ServerOptionsNew(&options_)); }
  ServerOptions(const ServerOptions&) = delete;
  ServerOptions& operator=(const ServerOptions&) = delete;
  ~ServerOptions() { Ignore(TRITONSERVER_ServerOptionsDelete(options_)); }
  TRITONSERVER_ServerOptions* handle() { return options_; }

 private:
  TRITONSERVER_ServerOptions* options_ = nullptr;
};

// The Python type of a C API parameter: str for texts, int for enumerations.
template <typename T>
struct FromPython {
  using Type = T;
  static T ToC(T value) { return value; }
};
template <>
struct FromPython<const char*> {
  using Type = std::string;
  static const char* ToC(const std::string& value) { return AsCText(value, "an option"); }
};
template <typename T>
  requires std::is_enum_v<T>
struct FromPython<T> {
  using Type = int;
  static T ToC(int value) { return static_cast<T>(value); }
};

// The Python method that calls the C function `Function`.
template <auto Function>
struct Setter;
template <typename... Args, TRITONSERVER_Error* (*Function)(TRITONSERVER_ServerOptions*, Args...)>
struct Setter<Function> {
  static void Call(ServerOptions& self,
                   const typename FromPython<std::remove_const_t<Args>>::Type&... values) {
    Check(Function(self.handle(), FromPython<std::remove_const_t<Args>>::ToC(values)...));
  }
};

}  // namespace

void RegisterOptions(py::module_& module) {
  py::class_<ServerOptions> options(module, "ServerOptions");
  options.def(py::init<>());
#define NEREID_OPTION(name, function) \
  options.def(name, &Setter<&TRITONSERVER_ServerOptions##function>::Call)
  NEREID_OPTION("server_id", SetServerId);
  NEREID_OPTION("model_repository", SetModelRepositoryPath);
  NEREID_OPTION("model_control_mode", SetModelControlMode);
  NEREID_OPTION("startup_model", SetStartupModel);
  NEREID_OPTION("strict_model_config", SetStrictModelConfig);
  NEREID_OPTION("model_config_name", SetModelConfigName);
  NEREID_OPTION("rate_limiter_mode", SetRateLimiterMode);
  NEREID_OPTION("rate_limiter_resource", AddRateLimiterResource);
  NEREID_OPTION("pinned_memory_pool_size", SetPinnedMemoryPoolByteSize);
  NEREID_OPTION("cuda_memory_pool_size", SetCudaMemoryPoolByteSize);
  NEREID_OPTION("cache_config", SetCacheConfig);
  NEREID_OPTION("cache_directory", SetCacheDirectory);
  NEREID_OPTION("min_supported_compute_capability", SetMinSupportedComputeCapability);
  NEREID_OPTION("exit_on_error", SetExitOnError);
  NEREID_OPTION("strict_readiness", SetStrictReadiness);
  NEREID_OPTION("exit_timeout", SetExitTimeout);
  NEREID_OPTION("buffer_manager_thread_count", SetBufferManagerThreadCount);
  NEREID_OPTION("model_load_thread_count", SetModelLoadThreadCount);
  NEREID_OPTION("model_load_retry_count", SetModelLoadRetryCount);
  NEREID_OPTION("model_namespacing", SetModelNamespacing);
  NEREID_OPTION("enable_peer_access", SetEnablePeerAccess);
  NEREID_OPTION("log_file", SetLogFile);
  NEREID_OPTION("log_info", SetLogInfo);
  NEREID_OPTION("log_warn", SetLogWarn);
  NEREID_OPTION("log_error", SetLogError);
  NEREID_OPTION("log_format", SetLogFormat);
  NEREID_OPTION("log_verbose", SetLogVerbose);
  NEREID_OPTION("metrics", SetMetrics);
  NEREID_OPTION("gpu_metrics", SetGpuMetrics);
  NEREID_OPTION("cpu_metrics", SetCpuMetrics);
  NEREID_OPTION("metrics_interval", SetMetricsInterval);
  NEREID_OPTION("metrics_setting", SetMetricsConfig);
  NEREID_OPTION("backend_directory", SetBackendDirectory);
  NEREID_OPTION("repo_agent_directory", SetRepoAgentDirectory);
  NEREID_OPTION("model_load_device_limit", SetModelLoadDeviceLimit);
  NEREID_OPTION("backend_setting", SetBackendConfig);
  NEREID_OPTION("host_policy", SetHostPolicy);
#undef NEREID_OPTION
  module.def("start_server",
             [](ServerOptions& options) { return std::make_unique<Server>(options.handle()); });
}

}  // namespace nereid::python
