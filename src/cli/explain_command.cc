// SPDX-License-Identifier: Apache-2.0
// nereid explain
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "base/log.h"
#include "check/explain.h"
#include "cli/commands.h"
#include "cli/find_model.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

using check::ExplainedValue;

struct ExplainSettings {
  std::string model;
  std::vector<std::string> repositories;
  std::string backend_directory;
  std::vector<std::string> backend_config;
  std::string model_config_name;
  bool is_static = false;
  bool disable_auto_complete = false;
};

// What is known of a model's configuration.
struct Explanation {
  check::ModelView model;
  std::vector<ExplainedValue> values;
  std::string load_error;  // why the backend could not complete it; empty if it did
};

std::vector<std::string> FlagsFor(const ExplainSettings& settings,
                                  const std::vector<std::string>& repositories) {
  std::vector<std::string> flags;
  for (const std::string& one : repositories) flags.push_back("--model-repository=" + one);
  if (!settings.backend_directory.empty()) {
    flags.push_back("--backend-directory=" + settings.backend_directory);
  }
  if (!settings.model_config_name.empty()) {
    flags.push_back("--model-config-name=" + settings.model_config_name);
  }
  for (const std::string& one : settings.backend_config) {
    flags.push_back("--backend-config=" + one);
  }
  if (settings.disable_auto_complete) flags.emplace_back("--disable-auto-complete-config");
  return flags;
}

base::Result<Explanation> Explain(const ExplainSettings& settings, const ServerProgram& server) {
  const ModelPlace place = PlaceOf(settings.model, settings.repositories);
  const check::CheckOptions options{.disable_auto_complete = settings.disable_auto_complete,
                                    .model_config_name = settings.model_config_name};
  Explanation explanation;
  NEREID_ASSIGN_OR_RETURN(explanation.model, FindModel(place, options));
  for (const base::Status& status : {explanation.model.read_status, explanation.model.parse_status,
                                     explanation.model.complete_status}) {
    NEREID_RETURN_IF_ERROR(status);
  }
  config::ModelConfig effective = *explanation.model.config;
  if (!settings.is_static) {
    auto loaded = server.load(FlagsFor(settings, place.repositories), place.name);
    if (loaded.ok()) {
      effective = *std::move(loaded);
    } else {
      explanation.load_error = std::string(loaded.status().message());
    }
  }
  explanation.values = check::ExplainConfig(explanation.model, effective);
  return explanation;
}

std::string OriginOf(const ExplainedValue& value, const check::ModelView& model) {
  std::string origin(check::SourceName(value.source));
  if (value.source == check::Source::kFile) {
    return value.line == 0 ? model.config_path
                           : fmt::format("{}:{}", model.config_path, value.line);
  }
  if (value.written.empty()) return origin;
  return fmt::format("{} ({}:{} says {})", origin, model.config_path, value.line, value.written);
}

void PrintTable(const Explanation& explanation, Output& output) {
  Table table({{.title = "Field"}, {.title = "Value"}, {.title = "From", .may_shrink = true}});
  for (const ExplainedValue& value : explanation.values) {
    table.Add({Cell(value.field), Cell(value.value, Style::kBold),
               Cell(OriginOf(value, explanation.model))});
  }
  output.PrintTable(table);
}

rapidjson::Document ToJson(const Explanation& explanation) {
  rapidjson::Document document(rapidjson::kObjectType);
  auto& allocator = document.GetAllocator();
  document.AddMember("model", TextValue(explanation.model.name, document), allocator);
  document.AddMember("config", TextValue(explanation.model.config_path, document), allocator);
  document.AddMember("load_error", TextValue(explanation.load_error, document), allocator);
  rapidjson::Value values(rapidjson::kArrayType);
  for (const ExplainedValue& value : explanation.values) {
    rapidjson::Value one(rapidjson::kObjectType);
    one.AddMember("field", TextValue(value.field, document), allocator);
    one.AddMember("value", TextValue(value.value, document), allocator);
    one.AddMember("from", TextValue(check::SourceName(value.source), document), allocator);
    one.AddMember("line", value.line, allocator);
    one.AddMember("written", TextValue(value.written, document), allocator);
    values.PushBack(one, allocator);
  }
  document.AddMember("values", values, allocator);
  return document;
}

ExitCode Run(const ExplainSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  // The result tells what went wrong; the log would repeat it.
  if (const base::Status status =
          base::ConfigureLog({.info = false, .warning = false, .error = false});
      !status.ok()) {
    return output.Fail(ExitCode::kFailure, status.message());
  }
  // Code of the model may print.
  output.KeepStandardOutput();
  const base::Result<Explanation> explanation = Explain(settings, invocation.server);
  if (!explanation.ok()) return output.Fail(ExitCode::kFailure, explanation.status().message());
  if (output.wants_json()) {
    output.PrintJson(ToJson(*explanation));
  } else {
    PrintTable(*explanation, output);
  }
  if (explanation->load_error.empty()) return ExitCode::kSuccess;
  output.Warn(fmt::format("the model cannot be loaded, so what the backend adds is not shown: {}",
                          explanation->load_error));
  return ExitCode::kFailure;
}

}  // namespace

void AddExplain(Command& command) {
  auto& settings = command.Keep<ExplainSettings>();
  command.Describe(
      "Shows the configuration of a model as a server completes it, and for each value where it "
      "comes from: a line of config.pbtxt, the names of files, the model file, or a default. The "
      "model is loaded once for this, in this process, and nothing is served.");
  AddModelPlace(command, settings.model, settings.repositories);
  command.Flag("--static", settings.is_static,
               "Does not load the model: leaves out what its backend would add.");
  command.Flag("--disable-auto-complete-config", settings.disable_auto_complete,
               "Explains what a server with this flag does.");
  command.Option("--model-config-name", "NAME", settings.model_config_name,
                 "Explains configs/NAME.pbtxt if the model has it.");
  command
      .Option("--backend-directory", "FOLDER", settings.backend_directory,
              "The backends of the server. By default those of this program.")
      .Names(Hint::kFolder);
  command.Option("--backend-config", "BACKEND,SETTING=VALUE", settings.backend_config,
                 "A setting of a backend, as for the server.");
  command.AddExample("nereid explain models/resnet", "Explains the model in this folder.");
  command.OnRun([&settings](Invocation& invocation) { return Run(settings, invocation); });
}

}  // namespace nereid::cli
