// SPDX-License-Identifier: Apache-2.0
// nereid init
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "check/new_model.h"
#include "check/starter_config.h"
#include "cli/commands.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

struct InitSettings {
  std::vector<std::string> files;
  std::string repository = "models";
  std::string name;
  std::string backend_directory;
  std::vector<std::string> backend_config;
  bool overwrites = false;
};

// One model that was made.
struct Made {
  check::NewModel model;
  std::string unknown;  // why its tensors are not known; empty if they are
};

base::Result<Made> Make(const std::string& file, const InitSettings& settings,
                        const ServerProgram& server) {
  NEREID_ASSIGN_OR_RETURN(check::NewModel model,
                          check::PlanNewModel(file, settings.repository, settings.name));
  NEREID_RETURN_IF_ERROR(check::CopyFiles(model, settings.overwrites));
  std::vector<std::string> flags = {"--model-repository=" + settings.repository};
  if (!settings.backend_directory.empty()) {
    flags.push_back("--backend-directory=" + settings.backend_directory);
  }
  for (const std::string& one : settings.backend_config) {
    flags.push_back("--backend-config=" + one);
  }
  auto loaded = server.load(std::move(flags), model.config.name);
  Made made{.model = std::move(model), .unknown = {}};
  if (loaded.ok()) {
    made.model.config = *std::move(loaded);
  } else {
    made.unknown = std::string(loaded.status().message());
  }
  const std::string text = check::StarterConfig(made.model.config, {file, made.unknown});
  NEREID_RETURN_IF_ERROR(check::WriteConfig(made.model, text));
  return made;
}

void Print(const Made& made, Output& output) {
  const std::string config = made.model.folder + "/config.pbtxt";
  output.PrintText(fmt::format("{}\n", output.InStyle(Style::kBold, config)));
  for (const auto& [from, to] : made.model.copies) output.PrintText(fmt::format("{}\n", to));
  if (made.unknown.empty()) return;
  output.Warn(fmt::format("the inputs and outputs of '{}' have to be written into '{}': {}",
                          made.model.config.name, config, made.unknown));
}

void AddJson(const Made& made, rapidjson::Document& document) {
  auto& allocator = document.GetAllocator();
  rapidjson::Value files(rapidjson::kArrayType);
  for (const auto& [from, to] : made.model.copies) {
    files.PushBack(TextValue(to, document), allocator);
  }
  rapidjson::Value one(rapidjson::kObjectType);
  one.AddMember("model", TextValue(made.model.config.name, document), allocator);
  one.AddMember("backend", TextValue(made.model.config.backend, document), allocator);
  one.AddMember("config", TextValue(made.model.folder + "/config.pbtxt", document), allocator);
  one.AddMember("files", files, allocator);
  one.AddMember("is_complete", made.unknown.empty(), allocator);
  one.AddMember("reason", TextValue(made.unknown, document), allocator);
  document.PushBack(one, allocator);
}

ExitCode Init(const InitSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  if (settings.files.empty()) return output.Fail(ExitCode::kUsage, "no model file is given");
  if (settings.files.size() > 1 && !settings.name.empty()) {
    return output.Fail(ExitCode::kUsage, "--name is for one file, and several are given");
  }
  rapidjson::Document document(rapidjson::kArrayType);
  for (const std::string& file : settings.files) {
    const base::Result<Made> made = Make(file, settings, invocation.server);
    if (!made.ok()) return output.Fail(ExitCode::kFailure, made.status().message());
    if (output.wants_json()) {
      AddJson(*made, document);
    } else {
      Print(*made, output);
    }
  }
  if (output.wants_json()) {
    output.PrintJson(document);
  } else {
    output.PrintText(fmt::format("\nNow: nereid --model-repository={}\n", settings.repository));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddInit(Command& command) {
  auto& settings = command.Keep<InitSettings>();
  command.Describe(
      "Copies model files into a repository and writes a configuration with comments for each. "
      "Inputs, outputs and batching are what the model's backend reads from the file; the file is "
      "loaded once for this. Where the file does not tell them (TorchScript, GraphDef), the "
      "configuration says what to write. Nothing is overwritten without --force.");
  command
      .Positional("MODEL_FILE", settings.files,
                  "Files .onnx, .pt, .pt2, .xml, .plan, .graphdef, .netdef or model.py, or folders "
                  "of a SavedModel.")
      .Names(Hint::kFile);
  command
      .Option("--repository,-r", "FOLDER", settings.repository,
              "The repository, which is made if it is not there.")
      .Names(Hint::kFolder);
  command.Option("--name", "NAME", settings.name,
                 "The name of the model. By default that of the file.");
  command.Flag("--force", settings.overwrites, "Overwrites files that are there.");
  command
      .Option("--backend-directory", "FOLDER", settings.backend_directory,
              "The backends that read the file. By default those of this program.")
      .Names(Hint::kFolder);
  command.Option("--backend-config", "BACKEND,SETTING=VALUE", settings.backend_config,
                 "A setting of a backend, as for the server.");
  command.AddExample("nereid init resnet50.onnx",
                     "Makes models/resnet50 with the file and a configuration.");
  command.OnRun([&settings](Invocation& invocation) { return Init(settings, invocation); });
}

}  // namespace nereid::cli
