// SPDX-License-Identifier: Apache-2.0
#include "check/starter_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/print.h"
#include "tensor/data_type.h"

namespace nereid::check {
namespace {

using config::InstanceGroup;
using config::ModelConfig;

// Returns a text in quotes, as the text format has them.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Dims(const std::vector<int64_t>& dims) {
  return dims.empty() ? "[ ]" : fmt::format("[ {} ]", fmt::join(dims, ", "));
}

template <typename Tensors>
void AddTensors(std::string_view list, std::string_view comment, const Tensors& tensors,
                std::string& text) {
  if (tensors.empty()) return;
  text += fmt::format("\n# {}\n{} [\n", comment, list);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i];
    text +=
        fmt::format("  {{\n    name: {}\n    data_type: {}\n    dims: {}\n", Quoted(tensor.name),
                    tensor::ConfigName(tensor.data_type), Dims(tensor.dims));
    if (tensor.reshape) text += fmt::format("    reshape {{ shape: {} }}\n", Dims(*tensor.reshape));
    text += i + 1 < tensors.size() ? "  },\n" : "  }\n";
  }
  text += "]\n";
}

void AddExampleTensors(const std::string& why, std::string& text) {
  text += "\n# The inputs and outputs could not be told:\n";
  size_t begin = 0;
  while (begin < why.size()) {
    const size_t end = std::min(why.find('\n', begin), why.size());
    text += fmt::format("#   {}\n", why.substr(begin, end - begin));
    begin = end + 1;
  }
  text +=
      "# Write them in place of this example. -1 stands for any size.\n"
      "# input [ { name: \"INPUT__0\" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]\n"
      "# output [ { name: \"OUTPUT__0\" data_type: TYPE_FP32 dims: [ 1000 ] } ]\n";
}

void AddBatching(const ModelConfig& config, std::string& text) {
  text += fmt::format(
      "\n# The largest batch that the model may get; 0 if it does not batch. Above 0, the "
      "dimensions "
      "below\n# are without that of the batch.\nmax_batch_size: {}\n",
      config.max_batch_size);
}

void AddScheduling(const ModelConfig& config, std::string& text) {
  constexpr std::string_view kDelay =
      "  # How long a request may wait for others to join its batch.\n"
      "  # max_queue_delay_microseconds: 500\n";
  if (config.sequence_batching() != nullptr) {
    ModelConfig scheduler;
    scheduler.scheduling_choice = config.scheduling_choice;
    text += "\n# Requests of one sequence go to the same instance, in order.\n";
    text += config::ToText(scheduler);
    return;
  }
  if (config.dynamic_batching() != nullptr) {
    text += fmt::format(
        "\n# Requests that wait at the same time are executed together.\ndynamic_batching "
        "{{\n{}}}\n",
        kDelay);
  } else if (config.max_batch_size > 1) {
    text += fmt::format(
        "\n# Without this, each request is executed alone.\n# dynamic_batching {{\n# {}# }}\n",
        "  max_queue_delay_microseconds: 500\n");
  }
}

void AddInstances(const ModelConfig& config, std::string& text) {
  text += "\n# How many requests or batches are executed at the same time, and on what.\n";
  if (config.instance_group.empty()) {
    text += "# instance_group [ { kind: KIND_CPU count: 1 } ]\n";
    return;
  }
  text += "instance_group [\n";
  for (size_t i = 0; i < config.instance_group.size(); ++i) {
    const InstanceGroup& group = config.instance_group[i];
    const std::string gpus =
        group.gpus.empty() ? "" : fmt::format(" gpus: [ {} ]", fmt::join(group.gpus, ", "));
    text += fmt::format("  {{ kind: {} count: {}{} }}{}\n", config::KindName(group.kind),
                        group.count, gpus, i + 1 < config.instance_group.size() ? "," : "");
  }
  text += "]\n";
}

}  // namespace

std::string StarterConfig(const ModelConfig& config, const StarterOrigin& origin) {
  std::string text = fmt::format(
      "# The configuration of model '{}', begun by `nereid init` from '{}'.\n"
      "# `nereid check` finds mistakes, `nereid explain {}` says what is in force.\n\n"
      "name: {}\n",
      config.name, origin.file, config.name, Quoted(config.name));
  if (!config.platform.empty()) text += fmt::format("platform: {}\n", Quoted(config.platform));
  if (!config.backend.empty()) text += fmt::format("backend: {}\n", Quoted(config.backend));
  AddBatching(config, text);
  if (!origin.unknown.empty()) AddExampleTensors(origin.unknown, text);
  AddTensors("input", "What requests contain. -1 stands for any size.", config.input, text);
  AddTensors("output", "What responses contain.", config.output, text);
  AddScheduling(config, text);
  AddInstances(config, text);
  if (config.is_decoupled()) {
    text +=
        "\n# A request may have any number of responses.\nmodel_transaction_policy { decoupled: "
        "true }\n";
  }
  text +=
      "\n# Which versions, that is folders, are served. Without this, the latest one.\n"
      "# version_policy { latest { num_versions: 2 } }\n"
      "\n# Runs the model before it is ready, so that the first request is not slow.\n";
  text +=
      "# model_warmup [ { name: \"zeros\" batch_size: 1 inputs { key: \"NAME\" value { data_type: "
      "TYPE_FP32 dims: [ 1 ] zero_data: true } } } ]\n";
  return text;
}

}  // namespace nereid::check
