// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/ensemble_scheduler/ensemble_utils.cc of Triton.
#include <map>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "schedule/ensemble_plan.h"

namespace nereid::schedule {
namespace {

using config::ModelConfig;

// One model's declaration of a tensor of the ensemble.
struct Declaration {
  std::string_view model;
  tensor::DataType type;
  std::vector<int64_t> dims;
  std::vector<int64_t> full_dims;  // with the batch dimension, if there is one

  Declaration(const ModelConfig& config, std::string_view model_name, tensor::DataType data_type,
              const std::vector<int64_t>& tensor_dims)
      : model(model_name), type(data_type), dims(tensor_dims) {
    if (config.max_batch_size > 0) full_dims.push_back(tensor::kWildcard);
    full_dims.insert(full_dims.end(), dims.begin(), dims.end());
  }
};

bool MayMatch(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != tensor::kWildcard && b[i] != tensor::kWildcard) return false;
  }
  return true;
}

class StepChecker {
 public:
  explicit StepChecker(const ModelConfig& ensemble) : ensemble_(ensemble) {
    for (const config::ModelInput& input : ensemble.input) {
      tensors_.try_emplace(input.name, ensemble, ensemble.name, input.data_type,
                           input.reshape.value_or(input.dims));
    }
    for (const config::ModelOutput& output : ensemble.output) {
      tensors_.try_emplace(output.name, ensemble, ensemble.name, output.data_type,
                           output.reshape.value_or(output.dims));
    }
  }

  void Check(size_t index, const ModelConfig& model) {
    const config::Ensembling::Step& step = ensemble_.ensemble_scheduling()->step[index];
    field_ = fmt::format("ensemble_scheduling.step[{}]", index);
    if (model.max_batch_size != 0 && model.max_batch_size < ensemble_.max_batch_size) {
      errors_.Add({base::StatusCode::kInvalidArgument,
                   fmt::format("ensemble {} allows maximum batch size {}, but it contains model {} "
                               "which only allows maximum batch size to be {}",
                               ensemble_.name, ensemble_.max_batch_size, step.model_name,
                               model.max_batch_size),
                   "max_batch_size", std::to_string(ensemble_.max_batch_size),
                   fmt::format("at most {}", model.max_batch_size), "ensemble-batch-size"});
    }
    CheckInputs(step, model);
    CheckOutputs(step, model);
  }

  config::ErrorList TakeErrors() { return std::move(errors_); }

 private:
  void Add(const std::string& text, std::string_view member, std::string found,
           std::string expected, std::string_view kind) {
    errors_.Add({base::StatusCode::kInvalidArgument,
                 fmt::format("in ensemble {}, {}", ensemble_.name, text),
                 fmt::format("{}.{}", field_, member), std::move(found), std::move(expected),
                 kind});
  }

  template <typename Tensors>
  static std::string NamesOf(const Tensors& tensors) {
    std::vector<std::string_view> names;
    for (const auto& tensor : tensors) names.push_back(tensor.name);
    return names.empty() ? "a tensor of the model" : "one of " + base::QuotedList(names);
  }

  void CheckInputs(const config::Ensembling::Step& step, const ModelConfig& model) {
    for (const auto& [input, tensor] : step.input_map) {
      if (model.FindInput(input) != nullptr) continue;
      Add(fmt::format("ensemble tensor {} is mapping to non-existing input {} in model {}", tensor,
                      input, step.model_name),
          fmt::format("input_map['{}']", input), fmt::format("'{}'", input), NamesOf(model.input),
          "ensemble-step-tensor");
    }
    for (const config::ModelInput& input : model.input) {
      const auto mapped = step.input_map.find(input.name);
      if (mapped != step.input_map.end()) {
        Join(mapped->second, fmt::format("input_map['{}']", input.name),
             Declaration(model, step.model_name, input.data_type, input.dims));
      } else if (!input.optional) {
        Add(fmt::format("input {} in model {} is not mapped to any ensemble tensors", input.name,
                        step.model_name),
            "input_map", "nothing", fmt::format("an entry with key '{}'", input.name),
            "ensemble-input-unmapped");
      }
    }
  }

  void CheckOutputs(const config::Ensembling::Step& step, const ModelConfig& model) {
    for (const auto& [output, tensor] : step.output_map) {
      if (model.FindOutput(output) != nullptr) continue;
      Add(fmt::format("ensemble tensor {} is mapped from non-existing output {} in model {}",
                      tensor, output, step.model_name),
          fmt::format("output_map['{}']", output), fmt::format("'{}'", output),
          NamesOf(model.output), "ensemble-step-tensor");
    }
    for (const auto& [name, tensor] : step.output_map) {
      const config::ModelOutput* const output = model.FindOutput(name);
      if (output == nullptr) continue;
      Join(tensor, fmt::format("output_map['{}']", name),
           Declaration(model, step.model_name, output->data_type, output->dims));
    }
  }

  // Variable dimensions fit anything here; each request is checked. A model without batching may
  // have the batch among its own dimensions.
  void Join(const std::string& tensor, const std::string& member, const Declaration& found) {
    const auto [entry, is_new] = tensors_.try_emplace(tensor, found);
    if (is_new) return;
    const Declaration& known = entry->second;
    if (known.type != found.type) {
      Add(fmt::format("ensemble tensor {}: inconsistent data type: {} is inferred from model {} "
                      "while {} is inferred from model {}",
                      tensor, tensor::ConfigName(known.type), known.model,
                      tensor::ConfigName(found.type), found.model),
          member, fmt::format("{} in {}", tensor::ConfigName(found.type), found.model),
          fmt::format("{} as in {}", tensor::ConfigName(known.type), known.model), "ensemble-type");
    } else if (!MayMatch(known.dims, found.dims) && !MayMatch(known.full_dims, found.full_dims)) {
      Add(fmt::format("ensemble tensor {}: inconsistent shape: {} is inferred from model {} while "
                      "{} is inferred from model {}",
                      tensor, tensor::ToString(known.full_dims), known.model,
                      tensor::ToString(found.full_dims), found.model),
          member, fmt::format("{} in {}", tensor::ToString(found.full_dims), found.model),
          fmt::format("{} as in {}", tensor::ToString(known.full_dims), known.model),
          "ensemble-shape");
    }
  }

  const ModelConfig& ensemble_;
  std::map<std::string, Declaration> tensors_;
  std::string field_;
  config::ErrorList errors_;
};

}  // namespace

config::ErrorList EnsembleStepErrors(const ModelConfig& ensemble,
                                     const std::vector<const ModelConfig*>& models) {
  StepChecker checker(ensemble);
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i] != nullptr) checker.Check(i, *models[i]);
  }
  return checker.TakeErrors();
}

base::Status CheckEnsembleSteps(const ModelConfig& ensemble,
                                const std::vector<const ModelConfig*>& models) {
  const config::ErrorList errors = EnsembleStepErrors(ensemble, models);
  if (errors.empty()) return base::OkStatus();
  const config::ConfigError& first = errors.errors().front();
  return {first.code, first.text};
}

}  // namespace nereid::schedule
