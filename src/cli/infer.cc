// SPDX-License-Identifier: Apache-2.0
// nereid infer
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/infer_request.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/npy.h"

namespace nereid::cli {
namespace {

struct InferSettings {
  std::string model;
  std::string version;
  InferArguments arguments;
  bool wants_zeros = false;
  bool wants_random = false;
  bool wants_all = false;
  std::optional<std::string> folder;
  ServerOptions server{.timeout = Seconds(60)};
};

// The elements of an output that a table shows.
constexpr size_t kShownElements = 10;

tensor::DataType TypeOf(const InferOutput& output) {
  return tensor::FromProtocolName(output.datatype).value_or(tensor::DataType::kInvalid);
}

base::Result<std::string> ElementsOf(const InferOutput& output, size_t limit) {
  if (!output.bytes) return output.json;
  return ElementsText(TypeOf(output), *output.bytes, limit);
}

// The response in the form that the HTTP protocol has for JSON. The document is made by hand, as
// the elements are JSON already.
base::Result<std::string> ResponseJson(const InferReply& reply) {
  std::string json = "{\"model_name\":";
  base::AppendJsonString(json, reply.model);
  json += ",\"model_version\":";
  base::AppendJsonString(json, reply.version);
  if (!reply.id.empty()) {
    json += ",\"id\":";
    base::AppendJsonString(json, reply.id);
  }
  if (!reply.parameters.empty()) json += ",\"parameters\":" + reply.parameters;
  json += ",\"outputs\":[";
  for (const InferOutput& output : reply.outputs) {
    if (json.back() != '[') json += ',';
    json += "{\"name\":";
    base::AppendJsonString(json, output.name);
    json += ",\"datatype\":";
    base::AppendJsonString(json, output.datatype);
    NEREID_ASSIGN_OR_RETURN(const std::string elements,
                            ElementsOf(output, std::numeric_limits<size_t>::max()));
    json += fmt::format(",\"shape\":{},\"data\":{}}}", ShapeText(output.shape), elements);
  }
  return json + "]}";
}

base::Result<ExitCode> PrintReply(const InferReply& reply, bool wants_all, Output& output) {
  if (output.wants_json()) {
    NEREID_ASSIGN_OR_RETURN(const std::string json, ResponseJson(reply));
    rapidjson::Document document;
    if (!ParseJson(json, document)) return UnknownReply();
    output.PrintJson(document);
    return ExitCode::kSuccess;
  }
  Table table({{.title = "OUTPUT"}, {.title = "TYPE"}, {.title = "SHAPE"}, {.title = "VALUES"}});
  for (const InferOutput& one : reply.outputs) {
    NEREID_ASSIGN_OR_RETURN(
        std::string elements,
        ElementsOf(one, wants_all ? std::numeric_limits<size_t>::max() : kShownElements));
    table.Add({one.name, one.datatype, ShapeText(one.shape), std::move(elements)});
  }
  output.PrintTable(table);
  return ExitCode::kSuccess;
}

// Names of outputs may be anything; as names of files, slashes may not occur.
std::string FileName(std::string name) {
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name + ".npy";
}

base::Status SaveReply(const InferReply& reply, const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return base::InvalidArgumentError(
        fmt::format("cannot make folder '{}': {}", folder, std::strerror(errno)));
  }
  for (const InferOutput& output : reply.outputs) {
    if (!output.bytes) {
      return base::UnsupportedError(
          fmt::format("output {} was not sent as binary data", output.name));
    }
    auto file = WriteNpy(TypeOf(output), output.shape, *output.bytes);
    if (!file.ok()) return file.status().WithPrefix(fmt::format("output {}: ", output.name));
    NEREID_RETURN_IF_ERROR(WriteFile(fmt::format("{}/{}", folder, FileName(output.name)), *file));
  }
  return base::OkStatus();
}

base::Result<ExitCode> Infer(const InferSettings& settings, ServerClient& client, Output& output) {
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document,
                          client.GetJson(ModelPath(settings.model, settings.version, "")));
  NEREID_ASSIGN_OR_RETURN(const ModelMetadata model, ReadModelMetadata(document));
  if (settings.arguments.inputs.empty() && !settings.arguments.filling) {
    std::string takes;
    for (const TensorMetadata& tensor : model.inputs) {
      takes += fmt::format("{}{} {} {}", takes.empty() ? "" : ", ", tensor.name, tensor.datatype,
                           ShapeText(tensor.shape));
    }
    return base::InvalidArgumentError(fmt::format(
        "there are no inputs: give --input, --zeros or --random. {} takes {}", model.name, takes));
  }
  NEREID_ASSIGN_OR_RETURN(InferBody body, MakeInferBody(settings.arguments, model));
  NEREID_ASSIGN_OR_RETURN(const ServerReply sent,
                          client.Post(ModelPath(settings.model, settings.version, "/infer"),
                                      std::move(body.body), std::move(body.headers)));
  NEREID_ASSIGN_OR_RETURN(const InferReply reply, ReadInferReply(sent));
  if (settings.folder) NEREID_RETURN_IF_ERROR(SaveReply(reply, *settings.folder));
  return PrintReply(reply, settings.wants_all, output);
}

void AddInputOptions(Command& command, InferSettings& settings) {
  const std::string heading = "Inputs";
  InferArguments& arguments = settings.arguments;
  command
      .Option(
          "--input,-i", "NAME=VALUE", arguments.inputs,
          "An input: JSON ([[1, 2]], \"a text\"), or @FILE with a .npy, .json or .raw file, or @- "
          "for JSON from the standard input. A batch dimension is added where it is missing, and "
          "a plain list takes the shape that the model expects. A model with one input needs no "
          "NAME= in front of [ and @.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--shape", "NAME=SIZES", arguments.shapes,
              "The shape of an input, such as image=1,28,28.")
      .In(heading);
  command
      .Flag("--zeros", settings.wants_zeros,
            "Fills the inputs that are not given with zeros (empty texts).")
      .In(heading);
  command
      .Flag("--random", settings.wants_random,
            "Fills the inputs that are not given with random numbers: from 0 to 1, integers from 0 "
            "to "
            "99.")
      .In(heading);
  command.Option("--seed", "N", arguments.seed, "Another seed gives other random numbers.")
      .In(heading);
  command
      .Option("--parameter,-p", "NAME=VALUE", arguments.parameters,
              "A parameter of the request, such as sequence_id=7 or sequence_start=true.")
      .In(heading);
  command.Option("--id", "TEXT", arguments.id, "The id of the request.").In(heading);
}

ExitCode Run(InferSettings& settings, Output& output) {
  if (settings.wants_zeros && settings.wants_random) {
    return output.Fail(ExitCode::kUsage, "--zeros and --random exclude each other");
  }
  if (settings.wants_zeros) settings.arguments.filling = Filling::kZeros;
  if (settings.wants_random) settings.arguments.filling = Filling::kRandom;
  return AskServer(settings.server, output,
                   [&](ServerClient& client) { return Infer(settings, client, output); });
}

}  // namespace

void AddInfer(Command& command) {
  auto& settings = command.Keep<InferSettings>();
  command.Describe(
      "Types and shapes are those that the server tells about the model, so that only values are "
      "needed, or not even these with --zeros or --random.");
  command.Positional("MODEL", settings.model, "The model.").Names(Hint::kModel);
  command.Option("--version", "N", settings.version, "This version of the model.");
  AddInputOptions(command, settings);
  command.Option("--output,-o", "NAME", settings.arguments.outputs,
                 "An output that is wanted; without any, all are.");
  command.Option("--classes", "N", settings.arguments.classes,
                 "Shows the N best classes with their labels instead of the values.");
  command.Flag("--all", settings.wants_all, "Shows all values, not only the first.");
  command
      .Option("--save", "FOLDER", settings.folder,
              "Writes each output to the file FOLDER/NAME.npy as well.")
      .Names(Hint::kFolder);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid infer resnet --random", "Tries a model with random inputs.");
  command.AddExample(
      "nereid infer sum --input a=[1,2] --input b=@b.npy --json | jq .outputs[0].data",
      "One input in place, one from NumPy; the first output as JSON.");
  command.AddExample("nereid infer digits --input @seven.npy --classes 3 --save out",
                     "The three best classes, and the output as a file in out.");
  command.OnRun([&settings](Invocation& invocation) { return Run(settings, invocation.output); });
}

}  // namespace nereid::cli
