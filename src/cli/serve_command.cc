// SPDX-License-Identifier: Apache-2.0
// nereid serve
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "base/json_text.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/serve.h"
#include "cli/serve_summary.h"

namespace nereid::cli {
namespace {

void PrintErrorJson(std::string_view text, Output& output) {
  output.PrintText(base::JsonError(text) + "\n");
  output.Flush();
}

// What is wrong with the command line and the files that it names is told apart from what this
// machine lacks.
ExitCode CodeOf(const base::Status& status) {
  const bool is_usage = status.code() == base::StatusCode::kInvalidArgument ||
                        status.code() == base::StatusCode::kNotFound;
  return is_usage ? ExitCode::kUsage : ExitCode::kFailure;
}

void PrintSummary(const std::vector<ModelSummary>& models, const ServerAddresses& addresses,
                  Output& output) {
  if (output.wants_json()) {
    rapidjson::Document document;
    document.Parse(SummaryJson(models, addresses).c_str());
    output.PrintJson(document);
  } else {
    output.PrintText(SummaryText(models, addresses, [&](std::string_view text) {
      return output.InStyle(Style::kBold, text);
    }));
  }
  output.Flush();
}

ExitCode Serve(const ServeSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  base::Result<ServePlan> plan = PlanServe(settings);
  if (!plan.ok()) return output.Fail(CodeOf(plan.status()), plan.status().message());
  for (const std::string& note : plan->notes) output.Note(note);
  const ServedModels& served = *plan->served;
  bool is_told = false;  // whether the standard output has a result
  ServerHooks hooks;
  hooks.stores = {served.store()};
  hooks.on_loaded = [&](service::Service& service, const ServerPorts& ports) {
    base::FlushLog();
    is_told = true;
    PrintSummary(Summarize(service, served), AddressesFor(settings.host, ports), output);
    // What happens from now on is told by the log.
    base::LogChange change{.error = true};
    if (settings.watch) change.info = true;
    base::ChangeLog(change);
  };
  hooks.describe_failure = [&](service::Service& service, const std::string& error) {
    std::string text;
    for (const ModelSummary& model : Summarize(service, served)) {
      if (model.failure.empty()) continue;
      text += fmt::format("{}model '{}' cannot be served: {}", text.empty() ? "" : "\n", model.name,
                          model.failure);
    }
    if (text.empty()) text = error;
    if (output.wants_json()) PrintErrorJson(text, output);
    is_told = true;
    return text;
  };
  const auto code = static_cast<ExitCode>(invocation.server.run(plan->flags, hooks));
  if (code != ExitCode::kSuccess && !is_told && output.wants_json()) {
    PrintErrorJson("the server did not start; the standard error says why", output);
  }
  return code;
}

void AddModelOptions(Command& command, ServeSettings& settings) {
  constexpr const char* kGroup = "One model file";
  command
      .Option("--name", "NAME", settings.name,
              "The name of the model. Several models are named as NAME=PATH each.")
      .In(kGroup);
  command
      .Option("--max-batch-size", "N", settings.max_batch_size,
              "How many rows of different requests may run together. 0: none. By default, the "
              "backend finds out whether rows depend on each other, for kinds of files that let "
              "it.")
      .In(kGroup);
  command
      .Option("--input", "NAME:TYPE:DIMS", settings.inputs,
              "An input, for files that do not say what theirs are, such as "
              "x:FP32:-1,3,224,224. -1 stands for any size.")
      .In(kGroup);
  command.Option("--output", "NAME:TYPE:DIMS", settings.outputs, "An output, likewise.").In(kGroup);
  command
      .Option("--config", "FILE", settings.config,
              "A config.pbtxt for the model; what it leaves out is completed.")
      .In(kGroup)
      .Names(Hint::kFile);
}

}  // namespace

void AddServe(Command& command) {
  auto& settings = command.Keep<ServeSettings>();
  command.Describe(
      "Serves model files without a repository and without a configuration: ONNX (.onnx), "
      "TorchScript (.pt), AOTInductor (.pt2), TensorFlow (a SavedModel folder, .pb, .graphdef), "
      "OpenVINO (.xml, .tflite, .pdmodel), Caffe2 (a folder with both networks), TensorRT (.plan) "
      "and Python (model.py); also folders of models and whole repositories. Prints what each "
      "model takes and gives, with a curl command and a Python program to paste.");
  command
      .Positional("MODEL", settings.models,
                  "A file, a folder or a repository; NAME=PATH chooses the model's name.")
      .Required()
      .Names(Hint::kFile);
  command.Option("--host", "ADDRESS", settings.host,
                 "The address to listen on. 0.0.0.0 serves other machines as well.");
  command.Option("--port,--http-port", "PORT", settings.port,
                 "The port of HTTP. Without it 8000, or the next free one.");
  command.Option("--grpc-port", "PORT", settings.grpc_port,
                 "The port of gRPC. Without it 8001, or the next free one.");
  command.Option("--metrics-port", "PORT", settings.metrics_port,
                 "The port of the metrics. Without it 8002, or the next free one.");
  command.Flag("--watch,-w", settings.watch, "Loads models again whenever their files change.");
  command.Flag("--verbose,-v", settings.verbose, "Prints the log of the start.");
  AddModelOptions(command, settings);
  command.Rest("FLAG", settings.server_flags);
  command.AddExample("nereid serve model.onnx", "Serves the model under the name 'model'.");
  command.AddExample("nereid serve cat=cats/model.onnx dog=dogs/model.onnx --watch",
                     "Serves two models, and loads each again when its file changes.");
  command.AddExample("nereid serve net.pt --input x:FP32:-1,3,224,224 --max-batch-size 8",
                     "Serves a TorchScript file, which does not say what its inputs are.");
  command.AddExample("nereid serve models/ -- --log-verbose=1",
                     "Serves a repository; flags of the server stand behind --.");
  command.OnRun([&settings](Invocation& invocation) { return Serve(settings, invocation); });
}

}  // namespace nereid::cli
