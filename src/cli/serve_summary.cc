// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"

namespace nereid::cli {
namespace {

// The sizes that are tried for dimensions of any size: small ones first, then usual sizes of
// pictures.
constexpr std::array<int64_t, 8> kSizes = {1, 8, 16, 32, 64, 128, 224, 256};

// The backends whose models only compute, so that a trial has no effects.
constexpr std::array<std::string_view, 6> kPure = {"onnxruntime", "pytorch",  "tensorflow",
                                                   "openvino",    "tensorrt", "caffe2"};

// With more models than this, only the first one is shown with a program.
constexpr size_t kMaxPrograms = 5;

std::string ShapeText(const std::vector<int64_t>& dims, bool is_batched) {
  std::vector<int64_t> whole = dims;
  if (is_batched) whole.insert(whole.begin(), -1);
  return fmt::format("[{}]", fmt::join(whole, ", "));
}

// Sets the call, and why it does not work.
void FindCall(service::Service& service, bool may_try, ModelSummary& model) {
  model.call = MakeSampleCall(model.config);
  if (!may_try || !HasFreeSizes(model.config)) return;
  for (const int64_t size : kSizes) {
    SampleCall call = MakeSampleCall(model.config, size);
    const base::Status status = Try(service, call);
    if (status.ok()) {
      model.call = std::move(call);
      model.call_failure.clear();
      return;
    }
    if (model.call_failure.empty()) model.call_failure = status.message();
  }
}

// One line of the table of inputs and outputs.
struct TensorLine {
  const char* direction;
  std::string name;
  std::string_view type;
  std::string shape;
};

template <typename Tensor>
void AddLines(const char* direction, const std::vector<Tensor>& tensors, bool is_batched,
              std::vector<TensorLine>& lines) {
  for (const Tensor& tensor : tensors) {
    lines.push_back({direction, tensor.name, tensor::ProtocolName(tensor.data_type),
                     ShapeText(tensor.dims, is_batched)});
  }
}

std::string TensorTable(const config::ModelConfig& config) {
  const bool is_batched = config.max_batch_size > 0;
  std::vector<TensorLine> lines;
  AddLines("input", config.input, is_batched, lines);
  AddLines("output", config.output, is_batched, lines);
  size_t width = 0;
  for (const TensorLine& line : lines) width = std::max(width, line.name.size());
  std::string text;
  for (const TensorLine& line : lines) {
    text += fmt::format("  {:<7} {:<{}}  {:<6}  {}\n", line.direction, line.name, width, line.type,
                        line.shape);
  }
  return text;
}

// `may_batch`: whether an option of the command could change it.
std::string BatchingText(const config::ModelConfig& config, bool may_batch) {
  if (config.ensemble_scheduling() != nullptr) return "";
  if (config.max_batch_size == 0) {
    const bool is_free = may_batch && std::ranges::all_of(config.input, [](const auto& input) {
                           return !input.dims.empty() && input.dims.front() == config::kWildcardDim;
                         });
    return fmt::format("  not batched: each request runs by itself{}\n",
                       is_free ? " (--max-batch-size 8 would run rows of different requests "
                                 "together; they must not depend on each other)"
                               : "");
  }
  if (config.dynamic_batching() != nullptr) {
    return fmt::format("  batched: up to {} rows of different requests run together\n",
                       config.max_batch_size);
  }
  return fmt::format("  a request may have up to {} rows\n", config.max_batch_size);
}

template <typename Tensor>
std::string TensorsJson(const std::vector<Tensor>& tensors, bool is_batched) {
  std::string json = "[";
  for (const Tensor& tensor : tensors) {
    json += json.size() > 1 ? "," : "";
    json += "{\"name\":";
    base::AppendJsonString(json, tensor.name);
    json += fmt::format(R"(,"datatype":"{}","shape":{}}})", tensor::ProtocolName(tensor.data_type),
                        ShapeText(tensor.dims, is_batched));
  }
  return json + "]";
}

void AppendMember(std::string& json, std::string_view name,
                  const std::optional<std::string>& text) {
  if (!text || text->empty()) return;
  json += fmt::format(R"("{}":)", name);
  base::AppendJsonString(json, *text);
  json += ',';
}

// What brings a framework that is missing.
std::string InstallAdvice(const ModelFile& model) {
  constexpr std::array<std::string_view, 3> kInWheels = {"pytorch", "tensorflow", "openvino"};
  const std::string place = " (docs/platforms.md)";
  if (std::ranges::find(kInWheels, model.backend) != kInWheels.end()) {
    return fmt::format(
        "'{0}' ({1}) needs a framework that is not installed with this server. Install it with pip "
        "install 'nereid[{2}]' (if this is the wheel), from the package nereid-backend-{2} "
        "(Debian, "
        "tarball), or in a clone of the source with ./x build --with {2}{3}",
        model.path, model.framework, model.backend, place);
  }
  return fmt::format(
      "'{0}' ({1}) needs the backend '{2}', which is not installed with this server: it is in the "
      "package nereid-backend-{2}{3}",
      model.path, model.framework, model.backend, place);
}

std::string MissingTensorsAdvice(const ModelFile& model) {
  return fmt::format(
      "this kind of file does not say what its inputs{0} are. Say it for each: --input "
      "NAME:TYPE:DIMS, such as --input x:FP32:-1,3,224,224, where -1 stands for any size{1}; "
      "--max-batch-size 8 runs requests together.\nThe backend says: ",
      model.lacks_outputs ? " and outputs" : "",
      model.lacks_outputs ? "; and --output likewise" : "");
}

// For a model in Python, which is served all the same.
std::string MissingInputsAdvice(const ModelSummary& model) {
  return fmt::format(
      "the model does not say what its inputs and outputs are. Say it in its auto_complete_config, "
      "or {}",
      model.is_file ? "for each: --input NAME:TYPE:DIMS, such as --input x:FP32:-1,3,224,224, and "
                      "--output likewise"
                    : "in its config.pbtxt");
}

}  // namespace

ServerAddresses AddressesFor(const std::string& host, const ServerPorts& ports) {
  const std::set<std::string_view> here = {"127.0.0.1", "0.0.0.0", "::1", "::", "localhost"};
  std::string name = host;
  if (here.contains(host)) {
    name = "localhost";
  } else if (host.find(':') != std::string::npos) {
    name = "[" + host + "]";
  }
  const auto address = [&](uint16_t port) {
    return port == 0 ? std::nullopt : std::optional(fmt::format("{}:{}", name, port));
  };
  return {
      .http = address(ports.http), .grpc = address(ports.grpc), .metrics = address(ports.metrics)};
}

std::vector<ModelSummary> Summarize(service::Service& service, const ServedModels& served) {
  std::map<std::string, ModelSummary> models;
  for (const service::IndexEntry& entry : service.RepositoryIndex(/*only_ready=*/false)) {
    const bool is_ready = entry.state == "READY";
    if (!is_ready && entry.reason.empty()) continue;
    ModelSummary& model = models[entry.name];
    if (!model.name.empty() && !is_ready) continue;  // another version of it is known
    model.name = entry.name;
    const ModelFile* const file = served.Find(entry.name);
    if (file != nullptr) {
      model.source = file->path;
      model.framework = file->framework;
      model.is_file = file->kind == ModelFile::Kind::kFile;
    }
    auto config = service.GetModelConfig(entry.name, "");
    if (!is_ready || !config.ok()) {
      model.failure = DescribeFailure(
          served, entry.name, is_ready ? std::string(config.status().message()) : entry.reason);
      continue;
    }
    model.failure.clear();
    model.config = **config;
    const bool is_pure = model.config.runtime.empty() &&
                         std::ranges::find(kPure, model.config.backend) != std::end(kPure);
    const bool may_try = file != nullptr && is_pure && !model.config.is_decoupled();
    FindCall(service, may_try, model);
  }
  std::vector<ModelSummary> list;
  for (auto& [name, model] : models) list.push_back(std::move(model));
  return list;
}

std::string SummaryText(const std::vector<ModelSummary>& models, const ServerAddresses& addresses,
                        const std::function<std::string(std::string_view)>& emphasize) {
  std::string text;
  size_t programs = 0;
  for (const ModelSummary& model : models) {
    const std::string& kind = model.framework.empty() ? model.config.platform : model.framework;
    std::vector<std::string> facts;
    if (!kind.empty()) facts.push_back(kind);
    if (!model.source.empty()) facts.push_back(model.source);
    text += fmt::format("\n{}  {}\n", emphasize(model.name), fmt::join(facts, ", "));
    if (!model.failure.empty()) {
      text += fmt::format("  cannot be served: {}\n", model.failure);
      continue;
    }
    text += TensorTable(model.config) +
            BatchingText(model.config, model.is_file && model.config.backend != "python");
    if (!model.call_failure.empty()) {
      text += fmt::format("  The calls below need other shapes, or other values than zeros: {}\n",
                          model.call_failure);
    }
    if (model.LacksInputs()) {
      text += fmt::format("  There is no call to show: {}\n", MissingInputsAdvice(model));
      continue;
    }
    if (const auto curl = CurlCommand(model.call, addresses)) text += "\n" + *curl + "\n";
    const auto program = PythonProgram(model.call, addresses);
    if (!program || (models.size() > kMaxPrograms && programs > 0)) continue;
    text += fmt::format("\n{}\n{}", emphasize("# pip install 'tritonclient[all]'"), *program);
    ++programs;
  }
  text += fmt::format("\n{}", emphasize("Serving"));
  if (addresses.http) text += fmt::format(" HTTP at {}", *addresses.http);
  if (addresses.grpc) text += fmt::format(", gRPC at {}", *addresses.grpc);
  if (addresses.metrics) text += fmt::format(", metrics at {}/metrics", *addresses.metrics);
  return text + ". Ctrl-C stops the server.\n";
}

std::string SummaryJson(const std::vector<ModelSummary>& models, const ServerAddresses& addresses) {
  std::string json = "{";
  AppendMember(json, "http", addresses.http);
  AppendMember(json, "grpc", addresses.grpc);
  AppendMember(json, "metrics", addresses.metrics);
  json += R"("models":[)";
  for (const ModelSummary& model : models) {
    json += json.ends_with('[') ? "{" : ",{";
    AppendMember(json, "name", model.name);
    AppendMember(json, "path", model.source);
    AppendMember(json, "framework", model.framework);
    AppendMember(json, "error", model.failure);
    if (model.failure.empty()) {
      const bool is_batched = model.config.max_batch_size > 0;
      json += fmt::format(R"("max_batch_size":{},"inputs":{},"outputs":{},)",
                          model.config.max_batch_size, TensorsJson(model.config.input, is_batched),
                          TensorsJson(model.config.output, is_batched));
      if (model.LacksInputs()) {
        AppendMember(json, "call_error", MissingInputsAdvice(model));
      } else {
        AppendMember(json, "curl", CurlCommand(model.call, addresses));
        AppendMember(json, "python", PythonProgram(model.call, addresses));
        AppendMember(json, "call_error", model.call_failure);
      }
    }
    json += fmt::format(R"("ready":{}}})", model.failure.empty());
  }
  return json + "]}";
}

std::string DescribeFailure(const ServedModels& served, const std::string& name,
                            const std::string& reason) {
  std::string text = served.WithOwnPaths(reason);
  while (text.ends_with('\n')) text.pop_back();
  const ModelFile* const model = served.Find(name);
  if (model == nullptr || model->kind != ModelFile::Kind::kFile) return text;
  if (reason.find("unable to find backend library for backend") != std::string::npos) {
    return InstallAdvice(*model);
  }
  // The backend is there, and its framework's library is not: a wheel without the extra.
  if (reason.find("cannot open shared object file") != std::string::npos) {
    return fmt::format("{}\nThe backend says: {}", InstallAdvice(*model), text);
  }
  if (!model->lacks_inputs || served.says_inputs()) return text;
  return MissingTensorsAdvice(*model) + text;
}

}  // namespace nereid::cli
