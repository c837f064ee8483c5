// SPDX-License-Identifier: Apache-2.0
#include "app/explain_model.h"

#include <filesystem>

#include "base/json_text.h"
#include "check/explain.h"
#include "check/read_model.h"
#include "config/print.h"

namespace nereid::app {
namespace {

// A model of an object store is read where its copy lies.
repository::ModelSource OnThisMachine(const repository::ModelSource& source) {
  repository::ModelSource local = source;
  std::error_code error;
  if (std::filesystem::exists(local.config_path, error)) return local;
  std::string_view rest = source.config_path;
  if (rest.starts_with(source.shown_folder)) {
    rest.remove_prefix(source.shown_folder.size());
    local.config_path = source.model_folder + std::string(rest);
  }
  return local;
}

void AppendExplained(std::string& json, const check::ExplainedValue& value) {
  json += "{\"field\":";
  base::AppendJsonString(json, value.field);
  json += ",\"value\":";
  base::AppendJsonString(json, value.value);
  json += ",\"from\":";
  base::AppendJsonString(json, check::SourceName(value.source));
  json += ",\"line\":";
  base::AppendJsonInteger(json, value.line);
  json += ",\"written\":";
  base::AppendJsonString(json, value.written);
  json += '}';
}

}  // namespace

base::Result<std::string> ExplainModel(engine::Engine& engine, const std::string& name) {
  NEREID_ASSIGN_OR_RETURN(const core::ModelHandle model, engine.FindModel(name, ""));
  const auto source = engine.SourceOf(*model);
  if (source == nullptr || !source->config.ok()) {
    return base::UnavailableError("model '" + name + "' is not loaded any more");
  }
  NEREID_ASSIGN_OR_RETURN(const auto effective, engine.GetModelConfig(name, model->version_text()));
  const check::ModelView view = check::ReadModel(OnThisMachine(*source), check::CheckOptions());
  for (const base::Status& status : {view.read_status, view.parse_status, view.complete_status}) {
    NEREID_RETURN_IF_ERROR(status);
  }
  std::string json = "{\"config\":";
  base::AppendJsonString(json, source->config_path);
  json += ",\"is_changed\":";
  base::AppendJsonBool(json, config::ToText(*view.config) != config::ToText(*source->config));
  json += ",\"values\":[";
  bool is_first = true;
  for (const check::ExplainedValue& value : check::ExplainConfig(view, *effective)) {
    if (!is_first) json += ',';
    is_first = false;
    AppendExplained(json, value);
  }
  json += "]}";
  return json;
}

}  // namespace nereid::app
