// SPDX-License-Identifier: Apache-2.0
// An ensemble's configuration, compiled at load: tensors and steps are numbers, each tensor knows
// the steps that wait for it and each step the steps whose answers it reads.
//
// A decoupled step answers many times, and everything behind it happens once for each answer.
// Tensors that happen together form a *group*: group 0 is what happens once per request, and each
// decoupled step opens a group of its own. All inputs of a step lie in one group
// (CheckEnsembleSteps refuses anything else), and so do the ensemble's outputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"
#include "core/model.h"

namespace nereid::schedule {

// One entry of an input_map or output_map.
struct EnsembleBinding {
  std::string name;     // the model's
  uint32_t tensor = 0;  // the ensemble's
};

// A model of the ensemble, and the tensors that it reads and makes.
struct EnsembleStep {
  std::string model_name;
  std::string model_id;        // what Submitter::PinModel is asked for: with its namespace, if any
  int64_t model_version = -1;  // -1: the latest when the step starts
  std::vector<EnsembleBinding> inputs;
  std::vector<EnsembleBinding> outputs;
  // Each tensor of `inputs` once, and each step that makes one of them once.
  std::vector<uint32_t> input_tensors;
  std::vector<uint32_t> producers;
  bool is_decoupled = false;
  uint32_t group = 0;         // of its inputs
  uint32_t output_group = 0;  // of its outputs; another one where it is decoupled
  bool may_wait = true;       // no step behind it is of the same model
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

// A tensor of the ensemble: which step makes it, and which steps read it.
struct EnsembleTensor {
  std::string name;
  uint32_t producer = kNoStep;      // kNoStep: an input of the ensemble
  std::vector<uint32_t> consumers;  // steps, each once
  int output = -1;                  // position among the ensemble's outputs
};

// What a request needs, which depends on the outputs it asks for.
struct EnsembleNeeds {
  std::vector<uint8_t> steps;     // by step: 1 where it runs
  std::vector<uint32_t> readers;  // by step: how many of those steps and of the outputs asked for
                                  // read its answer
  std::vector<uint8_t> outputs;   // by output: 1 where it is asked for
  uint32_t output_count = 0;
};

// Immutable.
class EnsemblePlan {
 public:
  // `decoupled` says for each step whether its model is. Needs a configuration that passed
  // config::CheckEnsemble; an error where inputs of one step lie in different groups.
  static base::Result<EnsemblePlan> Compile(const config::ModelConfig& config,
                                            const std::vector<bool>& decoupled);

  const std::vector<EnsembleStep>& steps() const { return steps_; }
  const std::vector<EnsembleTensor>& tensors() const { return tensors_; }
  // Tensors by position of the ensemble's inputs and outputs.
  const std::vector<uint32_t>& input_tensors() const { return input_tensors_; }
  const std::vector<uint32_t>& output_tensors() const { return output_tensors_; }
  uint32_t output_group() const { return output_group_; }
  bool is_decoupled() const { return is_decoupled_; }
  uint32_t max_inflight_requests() const { return max_inflight_requests_; }
  // For a request that asks for all outputs.
  const EnsembleNeeds& all() const { return all_; }
  // For one that asks for those whose entry of `needs.outputs` is 1: fills the rest of `needs`. A
  // step is left out when none of its outputs is of use.
  void Prune(EnsembleNeeds& needs) const;

 private:
  using NameIndex = std::unordered_map<std::string, uint32_t>;

  uint32_t TensorIndex(NameIndex& index, const std::string& name);
  void AddSteps(const config::Ensembling& ensemble, const std::vector<bool>& decoupled,
                NameIndex& index);
  void FindSelfFed();
  base::Status FindGroups(const std::string& ensemble);
  base::Status FindOutputGroup(const std::string& ensemble, const std::vector<uint32_t>& groups);

  std::vector<EnsembleStep> steps_;
  std::vector<EnsembleTensor> tensors_;
  std::vector<uint32_t> input_tensors_;
  std::vector<uint32_t> output_tensors_;
  uint32_t output_group_ = 0;
  bool is_decoupled_ = false;
  uint32_t max_inflight_requests_ = 0;
  EnsembleNeeds all_;
};

// Compares an ensemble with the models its steps name, one of `models` for each step: types,
// shapes, missing and doubled tensors, batch sizes, decoupled models.
base::Status CheckEnsembleSteps(const config::ModelConfig& ensemble,
                                const std::vector<const config::ModelConfig*>& models);

}  // namespace nereid::schedule
