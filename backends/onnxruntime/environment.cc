// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/environment.h"

#include <charconv>
#include <cstdlib>

#include "backend_kit/config.h"
#include "onnxruntime_backend/library.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// A line of ONNX Runtime's source.
struct Place {
  std::string file;
  int line = 0;
};

// Parses ONNX Runtime's locations, such as "graph.cc:12 Resolve"; the log has a field for the line.
Place PlaceOf(std::string_view location) {
  const size_t colon = location.find(':');
  Place place{.file = std::string(location.substr(0, colon))};
  if (colon != std::string_view::npos) {
    const std::string_view rest = location.substr(colon + 1);
    std::from_chars(rest.data(), rest.data() + rest.size(), place.line);
  }
  return place;
}

// Writes a line of ONNX Runtime to the server's log.
void ORT_API_CALL LogLine(void*, OrtLoggingLevel severity, const char* category, const char*,
                          const char* location, const char* message) {
  TRITONSERVER_LogLevel level = TRITONSERVER_LOG_VERBOSE;
  if (severity >= ORT_LOGGING_LEVEL_ERROR) {
    level = TRITONSERVER_LOG_ERROR;
  } else if (severity == ORT_LOGGING_LEVEL_WARNING) {
    level = TRITONSERVER_LOG_WARN;
  }
  const Place place = PlaceOf(location);
  backend::Log(level, StrCat("onnxruntime ", category, ": ", message), place.file.c_str(),
               place.line);
}

OrtLoggingLevel Level() {
  if (TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE)) {
    return ORT_LOGGING_LEVEL_VERBOSE;
  }
  return TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_WARN) ? ORT_LOGGING_LEVEL_WARNING
                                                          : ORT_LOGGING_LEVEL_ERROR;
}

// Disables telemetry. From 1.31 on, ONNX Runtime keeps a database of its use below the home folder,
// with paths of models and texts of errors, and sends it to its vendor. The C API's
// DisableTelemetryEvents comes too late, because creating the environment opens the database. The
// server sets this variable before it has threads, and its Python package when it is imported. It
// is only missing here in a program that embeds the C API. Setting it while other threads may read
// the environment is a risk, but better than sending data.
void SwitchOffTelemetry() {
  constexpr const char* kSwitch = "ORT_DISABLE_TELEMETRY";
  const char* const value = std::getenv(kSwitch);
  if (value == nullptr || std::string_view(value) != "1") {
    setenv(kSwitch, "1", /*overwrite=*/1);
  }
}

}  // namespace

Result<CommandLine> CommandLine::Parse(std::string_view json) {
  CommandLine options;
  if (json.empty()) {
    return options;
  }
  NEREID_KIT_ASSIGN(const rapidjson::Document config,
                    backend::ParseJson(json, "backend configuration"));
  const rapidjson::Value* flags = backend::Find(config, "cmdline");
  if (flags == nullptr) {
    return options;
  }
  const auto text = [flags](const char* key) {
    return std::string(backend::StringMember(*flags, key));
  };
  if (backend::Find(*flags, "default-max-batch-size") != nullptr) {
    NEREID_KIT_ASSIGN(options.default_max_batch_size,
                      backend::ParseInt(text("default-max-batch-size")));
  }
  if (backend::Find(*flags, "enable-global-threadpool") != nullptr) {
    NEREID_KIT_ASSIGN(options.global_thread_pool,
                      backend::ParseBool(text("enable-global-threadpool")));
  }
  if (options.global_thread_pool && backend::Find(*flags, "intra_op_thread_count") != nullptr) {
    NEREID_KIT_ASSIGN(options.intra_op_threads, backend::ParseInt(text("intra_op_thread_count")));
  }
  if (options.global_thread_pool && backend::Find(*flags, "inter_op_thread_count") != nullptr) {
    NEREID_KIT_ASSIGN(options.inter_op_threads, backend::ParseInt(text("inter_op_thread_count")));
  }
  return options;
}

Result<std::unique_ptr<Environment>> Environment::Create(const CommandLine& options) {
  SwitchOffTelemetry();
  NEREID_KIT_ASSIGN(const OrtApiBase* const base, OpenLibrary());
  if (ApiOrNull() == nullptr) {
    return Error::Unsupported(StrCat("the ONNX Runtime library found at run time is version ",
                                     base->GetVersionString(),
                                     ", which is too old for this backend"));
  }
  std::unique_ptr<Environment> environment(new Environment(options));
  OrtEnv* env = nullptr;
  if (options.global_thread_pool) {
    OrtThreadingOptions* raw = nullptr;
    NEREID_ORT_TRY(Api().CreateThreadingOptions(&raw));
    const Owned<OrtThreadingOptions> threading(raw);
    NEREID_ORT_TRY(Api().SetGlobalSpinControl(raw, 0));  // see AddSpinning in settings.cc
    if (options.intra_op_threads > 0) {
      NEREID_ORT_TRY(Api().SetGlobalIntraOpNumThreads(raw, options.intra_op_threads));
    }
    if (options.inter_op_threads > 0) {
      NEREID_ORT_TRY(Api().SetGlobalInterOpNumThreads(raw, options.inter_op_threads));
    }
    NEREID_ORT_TRY(Api().CreateEnvWithCustomLoggerAndGlobalThreadPools(LogLine, nullptr, Level(),
                                                                       "nereid", raw, &env));
  } else {
    NEREID_ORT_TRY(Api().CreateEnvWithCustomLogger(LogLine, nullptr, Level(), "nereid", &env));
  }
  environment->env_.reset(env);
  return environment;
}

backend::Result<std::unique_ptr<Environment>> Environment::Create(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* config = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &config));  // owned by the server
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(config));
  NEREID_KIT_ASSIGN(const CommandLine options, CommandLine::Parse(json));
  return Create(options);
}

}  // namespace nereid::onnxruntime
