// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_ServerOptionsSetLog*: the log belongs to the process, so these take effect at once.
#include "abi_objects/error.h"
#include "base/log.h"

using nereid::abi_objects::RunApiCall;
using nereid::base::LogFormat;
using nereid::base::Status;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions*,
                                                         const char* file) {
  return RunApiCall([&]() -> Status {
    nereid::base::LogOptions options = nereid::base::CurrentLogOptions();
    options.file = file == nullptr ? "" : file;
    const Status status = nereid::base::ConfigureLog(options);
    // Triton returns this code.
    return status.ok() ? status : nereid::base::InternalError(std::string(status.message()));
  });
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions*, bool log) {
  nereid::base::ChangeLog({.info = log});
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions*, bool log) {
  nereid::base::ChangeLog({.warning = log});
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions*, bool log) {
  nereid::base::ChangeLog({.error = log});
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions*,
                                                            int level) {
  nereid::base::ChangeLog({.verbose_level = level});
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions*,
                                                           const TRITONSERVER_LogFormat format) {
  switch (format) {
    case TRITONSERVER_LOG_DEFAULT:
      nereid::base::ChangeLog({.format = LogFormat::kDefault});
      break;
    case TRITONSERVER_LOG_ISO8601:
      nereid::base::ChangeLog({.format = LogFormat::kIso8601});
      break;
  }
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
