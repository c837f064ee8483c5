// SPDX-License-Identifier: Apache-2.0
// The server's log for plug-ins.
#include "base/log.h"

#include "abi_objects/error.h"

namespace {

using nereid::base::LogLevel;
using nereid::base::Status;

Status Write(TRITONSERVER_LogLevel level, const char* file, int line, const char* message) {
  using nereid::base::log_internal::Write;
  switch (level) {
    case TRITONSERVER_LOG_INFO:
      Write(LogLevel::kInfo, file, line, message);
      return {};
    case TRITONSERVER_LOG_WARN:
      Write(LogLevel::kWarning, file, line, message);
      return {};
    case TRITONSERVER_LOG_ERROR:
      Write(LogLevel::kError, file, line, message);
      return {};
    case TRITONSERVER_LOG_VERBOSE:
      Write(LogLevel::kVerbose, file, line, message);
      return {};
  }
  return {};
}

TRITONSERVER_Error* WriteOrFail(TRITONSERVER_LogLevel level, const char* file, int line,
                                const char* message) {
  return nereid::abi_objects::RunApiCall([&] { return Write(level, file, line, message); });
}

bool IsKnown(TRITONSERVER_LogLevel level) {
  const auto number = static_cast<int>(level);
  return number >= TRITONSERVER_LOG_INFO && number <= TRITONSERVER_LOG_VERBOSE;
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
  if (!IsKnown(level)) {
    return nereid::abi_objects::NewError(nereid::base::InvalidArgumentError(
        "unknown logging level '" + std::to_string(static_cast<int>(level)) + "'"));
  }
  if (!TRITONSERVER_LogIsEnabled(level)) return nullptr;
  return WriteOrFail(level, filename, line, msg);
}

}  // extern "C"
#pragma GCC visibility pop
