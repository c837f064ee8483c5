// SPDX-License-Identifier: Apache-2.0
// nereid models
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/model_metadata.h"
#include "cli/printable.h"

namespace nereid::cli {
namespace {

struct ModelsSettings {
  std::optional<std::string> model;
  bool is_ready_only = false;
  bool are_names_wanted = false;
  std::optional<Seconds> watch;
  ServerOptions server;
};

Style StyleOf(std::string_view state) {
  if (state == "READY") return Style::kGood;
  if (state == "UNAVAILABLE") return Style::kBad;
  return state.empty() ? Style::kDim : Style::kWarning;
}

void PrintIndex(const rapidjson::Document& index, Output& output) {
  Table table({{.title = "MODEL", .may_shrink = true},
               {.title = "VERSION", .is_number = true},
               {.title = "STATE"},
               {.title = "REASON", .may_shrink = true}});
  for (const rapidjson::Value& entry : index.GetArray()) {
    const std::string state(TextOf(entry, "state"));
    table.Add({std::string(TextOf(entry, "name")),
               std::string(TextOf(entry, "version")),
               {state.empty() ? "not loaded" : state, StyleOf(state)},
               std::string(TextOf(entry, "reason"))});
  }
  if (table.empty()) {
    output.PrintText("The server has no models.\n");
  } else {
    output.PrintTable(table);
  }
}

// The entries of the versions of a model stand together.
void PrintNames(const rapidjson::Document& index, Output& output) {
  std::string_view previous;
  for (const rapidjson::Value& entry : index.GetArray()) {
    const std::string_view name = TextOf(entry, "name");
    if (name != previous) output.PrintText(Printable(name) + "\n");
    previous = name;
  }
}

base::Result<ExitCode> ShowIndex(const ModelsSettings& settings, ServerClient& client,
                                 Output& output) {
  NEREID_ASSIGN_OR_RETURN(
      const rapidjson::Document index,
      client.PostJson("/v2/repository/index", settings.is_ready_only ? R"({"ready":true})" : "{}"));
  if (!index.IsArray()) return UnknownReply();
  if (output.wants_json()) {
    output.PrintJson(index);
  } else if (settings.are_names_wanted) {
    PrintNames(index, output);
  } else {
    PrintIndex(index, output);
  }
  return ExitCode::kSuccess;
}

void AddTensors(const std::vector<TensorMetadata>& tensors, const char* kind, Table& table) {
  for (const TensorMetadata& tensor : tensors) {
    table.Add({kind, tensor.name, tensor.datatype, ShapeText(tensor.shape)});
  }
}

base::Result<ExitCode> ShowModel(const ModelsSettings& settings, ServerClient& client,
                                 Output& output) {
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document,
                          client.GetJson(ModelPath(*settings.model, "", "")));
  if (output.wants_json()) {
    output.PrintJson(document);
    return ExitCode::kSuccess;
  }
  NEREID_ASSIGN_OR_RETURN(const ModelMetadata model, ReadModelMetadata(document));
  output.PrintText(fmt::format("{}  {}  versions {}\n\n", output.InStyle(Style::kBold, model.name),
                               model.platform, fmt::join(model.versions, ", ")));
  Table table({{.title = ""}, {.title = "NAME"}, {.title = "TYPE"}, {.title = "SHAPE"}});
  AddTensors(model.inputs, "input", table);
  AddTensors(model.outputs, "output", table);
  output.PrintTable(table);
  return ExitCode::kSuccess;
}

}  // namespace

void AddModels(Command& command) {
  auto& settings = command.Keep<ModelsSettings>();
  command.Describe(
      "Without a model, all models of the server's repositories: their versions, the state of each "
      "and, if it could not be loaded, the reason. With a model, its inputs and outputs; a -1 in a "
      "shape stands for any size.");
  command.Positional("MODEL", settings.model, "The model whose inputs and outputs are shown.")
      .Names(Hint::kModel);
  command.Flag("--ready", settings.is_ready_only, "Only models that are ready.");
  command.Flag("--names", settings.are_names_wanted, "Only the names, each on a line.");
  AddWatch(command, settings.watch);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid models", "All models and their states.");
  command.AddExample("nereid models resnet", "What resnet takes and gives.");
  command.AddExample("nereid models --json | jq -r '.[] | select(.state != \"READY\") | .name'",
                     "The names of the models that are not ready.");
  command.OnRun([&settings](Invocation& invocation) {
    return Watch(settings.watch, settings.server, invocation.output, [&](ServerClient& client) {
      return settings.model ? ShowModel(settings, client, invocation.output)
                            : ShowIndex(settings, client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
