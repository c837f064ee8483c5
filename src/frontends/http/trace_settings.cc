// SPDX-License-Identifier: Apache-2.0
// Names and texts: server/src/http_server.cc of Triton, HandleTrace.
#include "http/trace_settings.h"

#include <vector>

#include "common/json_text.h"
#include "common/trace_change.h"
#include "http/json_dom.h"

namespace nereid::http {
namespace {

base::Status ReadLevels(const JsonValue& object, observe::TraceChange& change) {
  const JsonValue* const value = FindMember(object, "trace_level");
  if (value == nullptr) return base::OkStatus();
  if (value->IsNull()) {
    common::ClearTraceSetting("trace_level", change);
    return base::OkStatus();
  }
  NEREID_ASSIGN_OR_RETURN(const JsonValue* const list, ArrayMember(object, "trace_level", ""));
  std::vector<std::string_view> levels;
  for (const JsonValue& level : list->GetArray()) {
    NEREID_ASSIGN_OR_RETURN(levels.emplace_back(), JsonText(level, ""));
  }
  return common::ReadTraceLevels(levels, change);
}

}  // namespace

std::string TraceSettingsJson(const observe::TraceView& view) {
  std::string json = "{\"trace_level\":[";
  for (const std::string_view level : common::TraceLevelNames(view.settings.levels)) {
    if (json.back() != '[') json += ',';
    common::AppendJsonString(json, level);
  }
  json += ']';
  for (const auto& [name, text] : common::TraceSettingTexts(view)) {
    json += ',';
    common::AppendJsonString(json, name);
    json += ':';
    common::AppendJsonString(json, text);
  }
  return json + '}';
}

base::Status UpdateTraceSettings(observe::Tracing& tracing, const std::string& model,
                                 std::string_view body) {
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(body, document));
  if (FindMember(document, "trace_file") != nullptr) {
    return base::UnsupportedError(
        "trace file location can not be updated through network protocol");
  }
  observe::TraceChange change;
  NEREID_RETURN_IF_ERROR(ReadLevels(document, change));
  for (const std::string_view name : common::kTraceNumbers) {
    const JsonValue* const value = FindMember(document, name.data());
    if (value == nullptr) continue;
    if (value->IsNull()) {
      common::ClearTraceSetting(name, change);
      continue;
    }
    NEREID_ASSIGN_OR_RETURN(const std::string_view text, JsonText(*value, ""));
    NEREID_RETURN_IF_ERROR(common::ReadTraceNumber(name, std::string(text), change));
  }
  return tracing.Change(model, change);
}

}  // namespace nereid::http
