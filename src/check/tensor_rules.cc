// SPDX-License-Identifier: Apache-2.0
// Rules about inputs and outputs, and about files with labels.
#include <algorithm>

#include <fmt/format.h>

#include "check/backend_facts.h"
#include "check/rules.h"
#include "config/labels.h"
#include "config/paths.h"
#include "config/validate.h"
#include "tensor/shape.h"

namespace nereid::check {
namespace {

using config::ModelConfig;

void CheckListed(const ModelView& model, const Completion& completion, Findings& findings) {
  const config::ErrorList all = config::TensorErrors(*model.config);
  config::ErrorList errors;
  for (const config::ConfigError& error : all.errors()) {
    const bool may_be_filled = error.kind == "tensor-type" || error.kind == "tensor-dims";
    if (!may_be_filled || !completion.members) errors.Add(error);
  }
  findings.Append(errors);
}

// Names of tensors that requests do not carry, but a model may have alone.
bool HasStatesOrControls(const ModelConfig& config) {
  const config::SequenceBatching* const batching = config.sequence_batching();
  return batching != nullptr && !(batching->state.empty() && batching->control_input.empty());
}

void CheckNone(const ModelView& model, const Completion& completion, Findings& findings) {
  const ModelConfig& config = *model.config;
  const BackendFacts* const facts = FactsOf(config.backend);
  // Python models and those of unknown backends may work without.
  if (facts == nullptr || !facts->needs_model_file || config.backend == "python") return;
  if (!config.runtime.empty() || HasStatesOrControls(config)) return;
  const auto report = [&](std::string_view list) {
    findings.AtField("tensor-missing", list,
                     {.text = fmt::format("model '{}' has no {}, and its file does not tell them",
                                          model.name, list),
                      .found = "nothing",
                      .expected = fmt::format("at least one {}", list)});
  };
  if (config.input.empty() && config.batch_input.empty() && !completion.inputs) report("input");
  if (config.output.empty() && !completion.outputs) report("output");
}

template <typename Tensors>
bool AllBeginVariable(const Tensors& tensors) {
  return !tensors.empty() && std::ranges::all_of(tensors, [](const auto& tensor) {
    return tensor.dims.size() >= 2 && tensor.dims[0] == config::kWildcardDim && !tensor.reshape;
  });
}

void CheckBatchDimension(const ModelView& model, Findings& findings) {
  const ModelConfig& config = *model.config;
  if (config.max_batch_size < 1 || config.ensemble_scheduling() != nullptr) return;
  if (!AllBeginVariable(config.input) || !AllBeginVariable(config.output)) return;
  findings.AtField("dims-batch", "input[0].dims",
                   {.text = fmt::format("every input and output of model '{}' begins with -1, and "
                                        "the batch dimension comes before it",
                                        model.name),
                    .found = tensor::ToString(config.input[0].dims),
                    .expected = "dimensions without that of the batch"});
}

void CheckLabelCount(const std::string& field, const config::ModelOutput& output, size_t labels,
                     Findings& findings) {
  const auto elements = tensor::ElementCount(output.dims);
  if (!elements || std::cmp_equal(*elements, labels)) return;
  findings.AtField("label-count", field,
                   {.text = fmt::format("'{}' has {} labels for the {} elements of output '{}'",
                                        output.label_filename, labels, *elements, output.name),
                    .found = fmt::format("{} lines", labels),
                    .expected = fmt::format("{} lines", *elements)});
}

}  // namespace

Completion CompletionOf(const ModelView& model, const CheckOptions& options) {
  if (options.disable_auto_complete) return {false, false, false};
  const ModelConfig& config = *model.config;
  std::string script;
  if (config.backend == "python" && !model.served.empty()) {
    script = TextOf(config::JoinPath(model.VersionFolder(*model.served.rbegin()),
                                     config.default_model_filename));
  }
  return CompletionBy(config, script);
}

bool IsComplete(const ModelView& model, const CheckOptions& options) {
  const ModelConfig& config = *model.config;
  const Completion completion = CompletionOf(model, options);
  const auto lacks = [](const auto& tensor) {
    return tensor.dims.empty() || tensor.data_type == tensor::DataType::kInvalid;
  };
  const bool lacks_members =
      std::ranges::any_of(config.input, lacks) || std::ranges::any_of(config.output, lacks);
  // The script of a Python model may change anything.
  if (config.backend == "python") return !completion.members;
  return !(completion.inputs && config.input.empty()) &&
         !(completion.outputs && config.output.empty()) && !(completion.members && lacks_members);
}

void CheckTensors(const ModelView& model, const CheckOptions& options, Findings& findings) {
  const Completion completion = CompletionOf(model, options);
  CheckListed(model, completion, findings);
  CheckNone(model, completion, findings);
  CheckBatchDimension(model, findings);
}

void CheckLabels(const ModelView& model, Findings& findings) {
  for (size_t i = 0; i < model.config->output.size(); ++i) {
    const config::ModelOutput& output = model.config->output[i];
    if (output.label_filename.empty()) continue;
    const std::string field = fmt::format("output[{}].label_filename", i);
    ModelConfig alone;
    alone.name = model.name;
    alone.output = {output};
    const auto labels = config::Labels::Load(alone, model.folder);
    if (labels.ok()) {
      CheckLabelCount(field, output, labels->Of(output.name).size(), findings);
    } else if (labels.status().code() != base::StatusCode::kUnsupported) {
      // Unsupported is a path outside the folder, which has a finding of its own.
      findings.AtField("label-file", field,
                       {.text = std::string(labels.status().message()),
                        .found = fmt::format("'{}'", output.label_filename),
                        .expected = "a file in the model's folder"});
    }
  }
}

}  // namespace nereid::check
