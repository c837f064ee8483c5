// SPDX-License-Identifier: Apache-2.0
// Names and texts: server/src/http_server.cc of Triton, HandleLogging.
#include "http/log_settings.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "common/json_text.h"
#include "http/json_dom.h"

namespace nereid::http {
namespace {

// Returns null if `object` has no such member, or if its value is null.
const JsonValue* FindValue(const JsonValue& object, const char* name) {
  const JsonValue* const value = FindMember(object, name);
  return value == nullptr || value->IsNull() ? nullptr : value;
}

base::Status ReadBool(const JsonValue& object, const char* name, std::optional<bool>& to) {
  if (const JsonValue* const value = FindValue(object, name); value != nullptr) {
    NEREID_ASSIGN_OR_RETURN(to, JsonBool(*value, ""));
  }
  return base::OkStatus();
}

void AppendBool(std::string& json, std::string_view name, bool value) {
  json += ",\"";
  json += name;
  json += "\":";
  common::AppendJsonBool(json, value);
}

}  // namespace

std::string LogSettingsJson() {
  const base::LogOptions options = base::CurrentLogOptions();
  std::string json = "{\"log_file\":";
  common::AppendJsonString(json, options.file);
  AppendBool(json, "log_info", options.info);
  AppendBool(json, "log_warning", options.warning);
  AppendBool(json, "log_error", options.error);
  json += ",\"log_verbose_level\":";
  common::AppendJsonInteger(json, options.verbose_level);
  json += ",\"log_format\":";
  common::AppendJsonString(json, base::LogFormatName(options.format));
  json += '}';
  return json;
}

base::Status UpdateLogSettings(std::string_view body) {
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(body, document));
  if (FindValue(document, "log_file") != nullptr) {
    return base::UnsupportedError("log file location can not be updated through network protocol");
  }
  base::LogChange change;
  NEREID_RETURN_IF_ERROR(ReadBool(document, "log_info", change.info));
  NEREID_RETURN_IF_ERROR(ReadBool(document, "log_warning", change.warning));
  NEREID_RETURN_IF_ERROR(ReadBool(document, "log_error", change.error));
  if (const JsonValue* const value = FindValue(document, "log_verbose_level"); value != nullptr) {
    NEREID_ASSIGN_OR_RETURN(const uint64_t level, JsonUnsigned(*value, ""));
    change.verbose_level = static_cast<int>(std::min<uint64_t>(level, INT32_MAX));
  }
  if (const JsonValue* const value = FindValue(document, "log_format"); value != nullptr) {
    NEREID_ASSIGN_OR_RETURN(const std::string_view name, JsonText(*value, ""));
    change.format = base::ParseLogFormat(name);
    if (!change.format) {
      return base::UnavailableError("invalid argument for --log_format, got: " + std::string(name));
    }
  }
  base::ChangeLog(change);
  return base::OkStatus();
}

}  // namespace nereid::http
