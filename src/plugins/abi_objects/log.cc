// SPDX-License-Identifier: Apache-2.0
// The server's log for plug-ins.
#include "base/log.h"

#include "abi_objects/error.h"

namespace {

using nereid::base::LogLevel;

void Write(LogLevel level, const char* file, int line, const char* message) {
  nereid::base::log_internal::Write(level, file, line, message);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
  switch (level) {
    case TRITONSERVER_LOG_INFO:
      return nereid::base::LogEnabled(LogLevel::kInfo);
    case TRITONSERVER_LOG_WARN:
      return nereid::base::LogEnabled(LogLevel::kWarning);
    case TRITONSERVER_LOG_ERROR:
      return nereid::base::LogEnabled(LogLevel::kError);
    case TRITONSERVER_LOG_VERBOSE:
      return nereid::base::VerboseEnabled(1);
  }
  return false;
}

TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* filename,
                                            const int line, const char* msg) {
  return nereid::abi_objects::Answer([&]() -> nereid::base::Status {
    const bool is_enabled = TRITONSERVER_LogIsEnabled(level);
    switch (level) {
      case TRITONSERVER_LOG_INFO:
        if (is_enabled) Write(LogLevel::kInfo, filename, line, msg);
        return {};
      case TRITONSERVER_LOG_WARN:
        if (is_enabled) Write(LogLevel::kWarning, filename, line, msg);
        return {};
      case TRITONSERVER_LOG_ERROR:
        if (is_enabled) Write(LogLevel::kError, filename, line, msg);
        return {};
      case TRITONSERVER_LOG_VERBOSE:
        if (is_enabled) Write(LogLevel::kVerbose, filename, line, msg);
        return {};
    }
    return nereid::base::InvalidArgumentError("unknown logging level '" + std::to_string(level) +
                                              "'");
  });
}

}  // extern "C"
#pragma GCC visibility pop
