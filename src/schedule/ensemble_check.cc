// SPDX-License-Identifier: Apache-2.0
// Texts: core/src/ensemble_scheduler/ensemble_utils.cc of Triton.
#include <map>

#include <fmt/core.h>

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

  base::Status Check(const config::Ensembling::Step& step, const ModelConfig& model) {
    if (model.max_batch_size != 0 && model.max_batch_size < ensemble_.max_batch_size) {
      return base::InvalidArgumentError(fmt::format(
          "ensemble {} allows maximum batch size {}, but it contains model {} which only allows "
          "maximum batch size to be {}",
          ensemble_.name, ensemble_.max_batch_size, step.model_name, model.max_batch_size));
    }
    NEREID_RETURN_IF_ERROR(CheckInputs(step, model));
    return CheckOutputs(step, model);
  }

 private:
  template <typename... Args>
  base::Status Error(fmt::format_string<Args...> text, Args&&... args) const {
    return base::InvalidArgumentError(fmt::format("in ensemble {}, ", ensemble_.name) +
                                      fmt::format(text, std::forward<Args>(args)...));
  }

  base::Status CheckInputs(const config::Ensembling::Step& step, const ModelConfig& model) {
    for (const auto& [input, tensor] : step.input_map) {
      if (model.FindInput(input) == nullptr) {
        return Error("ensemble tensor {} is mapping to non-existing input {} in model {}", tensor,
                     input, step.model_name);
      }
    }
    for (const config::ModelInput& input : model.input) {
      const auto mapped = step.input_map.find(input.name);
      if (mapped != step.input_map.end()) {
        NEREID_RETURN_IF_ERROR(
            Join(mapped->second, Declaration(model, step.model_name, input.data_type, input.dims)));
      } else if (!input.optional) {
        return Error("input {} in model {} is not mapped to any ensemble tensors", input.name,
                     step.model_name);
      }
    }
    return base::OkStatus();
  }

  base::Status CheckOutputs(const config::Ensembling::Step& step, const ModelConfig& model) {
    for (const auto& [output, tensor] : step.output_map) {
      if (model.FindOutput(output) == nullptr) {
        return Error("ensemble tensor {} is mapped from non-existing output {} in model {}", tensor,
                     output, step.model_name);
      }
    }
    for (const auto& [name, tensor] : step.output_map) {
      const config::ModelOutput& output = *model.FindOutput(name);
      NEREID_RETURN_IF_ERROR(
          Join(tensor, Declaration(model, step.model_name, output.data_type, output.dims)));
    }
    return base::OkStatus();
  }

  // Variable dimensions fit anything here; each request is checked. A model without batching may
  // have the batch among its own dimensions.
  base::Status Join(const std::string& tensor, Declaration found) {
    const auto [entry, is_new] = tensors_.try_emplace(tensor, found);
    if (is_new) return base::OkStatus();
    const Declaration& known = entry->second;
    if (known.type != found.type) {
      return Error(
          "ensemble tensor {}: inconsistent data type: {} is inferred from model {} while {} is "
          "inferred from model {}",
          tensor, tensor::ConfigName(known.type), known.model, tensor::ConfigName(found.type),
          found.model);
    }
    if (!MayMatch(known.dims, found.dims) && !MayMatch(known.full_dims, found.full_dims)) {
      return Error(
          "ensemble tensor {}: inconsistent shape: {} is inferred from model {} while {} is "
          "inferred from model {}",
          tensor, tensor::ToString(known.full_dims), known.model, tensor::ToString(found.full_dims),
          found.model);
    }
    return base::OkStatus();
  }

  const ModelConfig& ensemble_;
  std::map<std::string, Declaration> tensors_;
};

}  // namespace

base::Status CheckEnsembleSteps(const ModelConfig& ensemble,
                                const std::vector<const ModelConfig*>& models) {
  StepChecker checker(ensemble);
  const std::vector<config::Ensembling::Step>& steps = ensemble.ensemble_scheduling()->step;
  for (size_t i = 0; i < steps.size(); ++i) {
    NEREID_RETURN_IF_ERROR(checker.Check(steps[i], *models[i]));
  }
  return base::OkStatus();
}

}  // namespace nereid::schedule
