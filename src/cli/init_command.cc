// SPDX-License-Identifier: Apache-2.0
// nereid init
#include <algorithm>

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
  std::optional<std::string> name;
  std::string backend_directory;
  std::vector<std::string> backend_config;
  bool overwrites = false;
};

// One model that was made.
struct Made {
  check::NewModel model;
  std::string unknown;  // why its tensors are not known; empty if they are
};

// Whether the error says that this machine cannot load the model, however good its file is.
bool IsForLackOfSomething(std::string_view error) {
  constexpr std::string_view kLacks[] = {"unable to find backend library",
                                         "cannot open shared object file", "ImportError",
                                         "ModuleNotFoundError"};
  return std::ranges::any_of(
      kLacks, [&](std::string_view text) { return error.find(text) != std::string_view::npos; });
}

// Whether files of the model's kind say what its inputs and outputs are, so that the file is no
// model if they cannot be had. A TensorRT plan says it only on a machine with its GPU.
bool TellsTensors(const config::ModelConfig& config) {
  const std::string& platform = config.platform;
  return platform != "pytorch_libtorch" && platform != "tensorflow_graphdef" &&
         config.backend != "caffe2" && config.backend != "tensorrt";
}

base::Result<Made> Make(check::NewModel model, const InitSettings& settings,
                        const ServerProgram& server) {
  Made made{.model = std::move(model), .unknown = {}};
  NEREID_ASSIGN_OR_RETURN(const auto staged,
                          check::StagedModel::Create(made.model, settings.overwrites));
  std::vector<std::string> flags = {"--model-repository=" + staged->repository()};
  if (!settings.backend_directory.empty()) {
    flags.push_back("--backend-directory=" + settings.backend_directory);
  }
  for (const std::string& one : settings.backend_config) {
    flags.push_back("--backend-config=" + one);
  }
  auto loaded = server.load(std::move(flags), made.model.config.name);
  if (loaded.ok()) {
    made.model.config = *std::move(loaded);
    if (made.model.config.input.empty() && made.model.config.output.empty()) {
      made.unknown = "the model does not say what they are";
    }
  } else {
    const std::string_view error = loaded.status().message();
    made.unknown = staged->WithOwnPaths(std::string(error));
    const bool is_wrong = TellsTensors(made.model.config) || staged->IsNamedIn(error);
    if (is_wrong && !IsForLackOfSomething(error)) {
      return base::InvalidArgumentError(
          fmt::format("'{}' is not a model that can be loaded, and nothing was changed: {}",
                      made.model.file, made.unknown));
    }
  }
  NEREID_RETURN_IF_ERROR(
      staged->Install(check::StarterConfig(made.model.config, {made.model.file, made.unknown})));
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
  if (settings.files.size() > 1 && settings.name) {
    return output.Fail(ExitCode::kUsage, "--name is for one file, and several are given");
  }
  std::vector<check::NewModel> models;
  for (const std::string& file : settings.files) {
    auto model = check::PlanNewModel(file, settings.repository, settings.name);
    if (!model.ok()) return output.Fail(ExitCode::kUsage, model.status().message());
    models.push_back(*std::move(model));
  }
  // Code of the models may print.
  output.KeepStandardOutput();
  rapidjson::Document document(rapidjson::kArrayType);
  for (check::NewModel& model : models) {
    const base::Result<Made> made = Make(std::move(model), settings, invocation.server);
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
      "configuration says what to write. A file that is not a model changes nothing. Nothing is "
      "overwritten without --force.");
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
