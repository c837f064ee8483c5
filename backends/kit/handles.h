// SPDX-License-Identifier: Apache-2.0
// Owners for the server's objects that a backend must delete (messages, buffer attributes, metrics,
// parameters), and the server's log.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::backend {

// Deleters for std::unique_ptr; a failure to delete can only be ignored.
struct MessageDeleter {
  void operator()(TRITONSERVER_Message* message) const {
    Error(TRITONSERVER_MessageDelete(message)).Ignore();
  }
};
// Calls TRITONSERVER_BufferAttributesDelete.
struct BufferAttributesDeleter {
  void operator()(TRITONSERVER_BufferAttributes* attributes) const {
    Error(TRITONSERVER_BufferAttributesDelete(attributes)).Ignore();
  }
};
// Calls TRITONSERVER_MetricFamilyDelete.
struct MetricFamilyDeleter {
  void operator()(TRITONSERVER_MetricFamily* family) const {
    Error(TRITONSERVER_MetricFamilyDelete(family)).Ignore();
  }
};
// Calls TRITONSERVER_MetricDelete.
struct MetricDeleter {
  void operator()(TRITONSERVER_Metric* metric) const {
    Error(TRITONSERVER_MetricDelete(metric)).Ignore();
  }
};
// Calls TRITONSERVER_ParameterDelete.
struct ParameterDeleter {
  void operator()(TRITONSERVER_Parameter* parameter) const {
    TRITONSERVER_ParameterDelete(parameter);
  }
};

using Message = std::unique_ptr<TRITONSERVER_Message, MessageDeleter>;
using BufferAttributes = std::unique_ptr<TRITONSERVER_BufferAttributes, BufferAttributesDeleter>;
using MetricFamily = std::unique_ptr<TRITONSERVER_MetricFamily, MetricFamilyDeleter>;
using Metric = std::unique_ptr<TRITONSERVER_Metric, MetricDeleter>;
using Parameter = std::unique_ptr<TRITONSERVER_Parameter, ParameterDeleter>;

// Returns the JSON text of a message that the server owns; a view into it, valid as long as the
// message.
inline Result<std::string_view> MessageText(TRITONSERVER_Message* message) {
  const char* base = nullptr;
  size_t size = 0;
  NEREID_KIT_TRY(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  return std::string_view(base, size);
}

// Writes one line to the server's log with the name of the backend's source file.
inline void Log(TRITONSERVER_LogLevel level, const std::string& text,
                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  Error(TRITONSERVER_LogMessage(level, file, line, text.c_str())).Ignore();
}
inline void LogInfo(const std::string& text, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  Log(TRITONSERVER_LOG_INFO, text, file, line);
}
inline void LogWarning(const std::string& text, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  Log(TRITONSERVER_LOG_WARN, text, file, line);
}
// Logs the error, if there is one. For calls whose failure can no longer be reported to a client.
inline void LogIfError(Error error, const char* what, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  if (!error.ok()) {
    Log(TRITONSERVER_LOG_ERROR, StrCat(what, ": ", error.message()), file, line);
  }
}

}  // namespace nereid::backend
