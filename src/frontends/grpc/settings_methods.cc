// SPDX-License-Identifier: Apache-2.0
// Names and texts: server/src/grpc/grpc_server.cc of Triton, RegisterLogging and RegisterTrace.
#include "grpc/settings_methods.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "common/trace_change.h"

namespace nereid::grpc {
namespace {

using LogValue = inference::LogSettingsRequest::SettingValue;
using LogValues = google::protobuf::Map<std::string, LogValue>;

base::Status Expected(std::string_view type, std::string_view name) {
  return base::InvalidArgumentError("expect " + std::string(type) + " for '" + std::string(name) +
                                    "'");
}

base::Status ReadBool(const LogValues& values, const char* name, std::optional<bool>& to) {
  const auto found = values.find(name);
  if (found == values.end()) return base::OkStatus();
  if (found->second.parameter_choice_case() != LogValue::kBoolParam) {
    return Expected("boolean", name);
  }
  to = found->second.bool_param();
  return base::OkStatus();
}

base::Status ChangeLog(const LogValues& values) {
  if (values.contains("log_file")) {
    return base::UnsupportedError("log file location can not be updated through network protocol");
  }
  base::LogChange change;
  NEREID_RETURN_IF_ERROR(ReadBool(values, "log_info", change.info));
  NEREID_RETURN_IF_ERROR(ReadBool(values, "log_warning", change.warning));
  NEREID_RETURN_IF_ERROR(ReadBool(values, "log_error", change.error));
  if (const auto level = values.find("log_verbose_level"); level != values.end()) {
    if (level->second.parameter_choice_case() != LogValue::kUint32Param) {
      return Expected("int32", "log_verbose_level");
    }
    change.verbose_level =
        static_cast<int>(std::min<uint32_t>(level->second.uint32_param(), INT32_MAX));
  }
  if (const auto format = values.find("log_format"); format != values.end()) {
    if (format->second.parameter_choice_case() != LogValue::kStringParam) {
      return Expected("string", "log_format");
    }
    change.format = base::ParseLogFormat(format->second.string_param());
    if (!change.format) {
      return base::InvalidArgumentError("invalid argument for log_format, got: " +
                                        format->second.string_param());
    }
  }
  base::ChangeLog(change);
  return base::OkStatus();
}

using TraceValue = inference::TraceSettingRequest::SettingValue;
using TraceValues = google::protobuf::Map<std::string, TraceValue>;

base::Result<observe::TraceChange> ReadTraceChange(const TraceValues& values) {
  if (values.contains("trace_file")) {
    return base::UnsupportedError(
        "trace file location can not be updated through network protocol");
  }
  observe::TraceChange change;
  if (const auto found = values.find("trace_level"); found != values.end()) {
    const std::vector<std::string_view> levels(found->second.value().begin(),
                                               found->second.value().end());
    if (levels.empty()) {
      common::ClearTraceSetting("trace_level", change);
    } else {
      NEREID_RETURN_IF_ERROR(common::ReadTraceLevels(levels, change));
    }
  }
  for (const std::string_view name : common::kTraceNumbers) {
    const auto found = values.find(std::string(name));
    if (found == values.end()) continue;
    const auto& texts = found->second.value();
    if (texts.empty()) {
      common::ClearTraceSetting(name, change);
    } else if (texts.size() > 1) {
      return base::InvalidArgumentError("expect only 1 value for '" + std::string(name) + "'");
    } else {
      NEREID_RETURN_IF_ERROR(common::ReadTraceNumber(name, texts[0], change, " "));
    }
  }
  return change;
}

}  // namespace

base::Status TraceSetting(service::Service& service, const inference::TraceSettingRequest& request,
                          inference::TraceSettingResponse& reply) {
  observe::Tracing* const tracing = service.tracing();
  if (tracing == nullptr) return base::UnavailableError("the server does not support trace");
  if (!request.model_name().empty()) {
    const base::Result<bool> ready = service.IsModelReady(request.model_name(), "");
    if (!ready.ok() || !*ready) {
      return base::InvalidArgumentError("Request for unknown model : " + request.model_name());
    }
  }
  if (!request.settings().empty()) {
    NEREID_ASSIGN_OR_RETURN(const observe::TraceChange change, ReadTraceChange(request.settings()));
    NEREID_RETURN_IF_ERROR(tracing->Change(request.model_name(), change));
  }
  const observe::TraceView view = tracing->Read(request.model_name());
  auto& settings = *reply.mutable_settings();
  for (const std::string_view level : common::TraceLevelNames(view.settings.levels)) {
    settings["trace_level"].add_value(std::string(level));
  }
  for (const auto& [name, text] : common::TraceSettingTexts(view)) settings[name].add_value(text);
  return base::OkStatus();
}

base::Status LogSettings(service::Service&, const inference::LogSettingsRequest& request,
                         inference::LogSettingsResponse& reply) {
  NEREID_RETURN_IF_ERROR(ChangeLog(request.settings()));
  const base::LogOptions options = base::CurrentLogOptions();
  auto& settings = *reply.mutable_settings();
  settings["log_file"].set_string_param(options.file);
  settings["log_info"].set_bool_param(options.info);
  settings["log_warning"].set_bool_param(options.warning);
  settings["log_error"].set_bool_param(options.error);
  settings["log_verbose_level"].set_uint32_param(static_cast<uint32_t>(options.verbose_level));
  settings["log_format"].set_string_param(std::string(base::LogFormatName(options.format)));
  return base::OkStatus();
}

}  // namespace nereid::grpc
