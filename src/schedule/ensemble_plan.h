// SPDX-License-Identifier: Apache-2.0
// An ensemble's configuration, compiled at load: tensors and steps are numbers, each tensor knows
// the steps that wait for it and each step the steps whose responses it reads.
//
// A decoupled step sends many responses, and everything after it happens once for each of them.
// Tensors that are set together form a *group*: group 0 is for what happens once per request, and
// each decoupled step opens its own group. All inputs of a step lie in one group
// (CheckEnsembleSteps refuses anything else), and so do the ensemble's outputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "config/errors.h"
#include "config/model_config.h"
#include "core/model.h"
#include "schedule/producer_waits.h"

namespace nereid::schedule {

// One entry of an input_map or output_map.
struct EnsembleBinding {
  std::string name;     // in the model
  uint32_t tensor = 0;  // in the ensemble
};

// A model of the ensemble, and the tensors that it reads and produces.
struct EnsembleStep {
  std::string model_name;
  std::string model_id;        // the argument of Submitter::PinModel: with its namespace, if any
  int64_t model_version = -1;  // -1: the latest when the step starts
  std::vector<EnsembleBinding> inputs;
  std::vector<EnsembleBinding> outputs;
  // Each tensor of `inputs` once, and each step that produces one of them once.
  std::vector<uint32_t> input_tensors;
  std::vector<uint32_t> producers;
  bool is_decoupled = false;
  uint32_t group = 0;         // of its inputs
  uint32_t output_group = 0;  // of its outputs; another one if it is decoupled
  // All steps that read what comes from its responses, directly or through others.
  std::vector<uint32_t> behind;
  // Whether its model may be made to wait for the steps behind it: it is decoupled, holds no
  // resource of the rate limiter, and neither it nor a model within it is in one of them.
  bool may_wait = false;
  // The models of this step, and those of the steps behind it. Empty unless may_wait.
  ProducerWaits::Models waits;
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

// A tensor of the ensemble: the step that produces it, and the steps that read it.
struct EnsembleTensor {
  std::string name;
  uint32_t producer = kNoStep;      // kNoStep: an input of the ensemble
  std::vector<uint32_t> consumers;  // steps, each once
  int output = -1;                  // position among the ensemble's outputs
};

// What a request needs, which depends on its requested outputs.
struct EnsembleNeeds {
  std::vector<uint8_t> steps;  // by step: 1 if it runs
  std::vector<uint32_t>
      readers;  // by step: how many needed steps and requested outputs read its response
  std::vector<uint8_t> outputs;  // by output: 1 if it is requested
  uint32_t output_count = 0;
};

// What a plan needs to know of a step's model.
struct StepModel {
  bool is_decoupled = false;
  bool holds_resources = false;         // core::Model::holds_resources
  std::vector<std::string> parts = {};  // core::Model::parts
};

// Immutable.
class EnsemblePlan {
 public:
  // `models` has one entry for each step. Fails if inputs of one step lie in different groups.
  // REQUIRES: the configuration passed config::CheckEnsemble.
  static base::Result<EnsemblePlan> Compile(const config::ModelConfig& config,
                                            const std::vector<StepModel>& models);

  const std::vector<EnsembleStep>& steps() const { return steps_; }
  const std::vector<EnsembleTensor>& tensors() const { return tensors_; }
  // Tensors by position of the ensemble's inputs and outputs.
  const std::vector<uint32_t>& input_tensors() const { return input_tensors_; }
  const std::vector<uint32_t>& output_tensors() const { return output_tensors_; }
  uint32_t output_group() const { return output_group_; }
  bool is_decoupled() const { return is_decoupled_; }
  uint32_t max_inflight_requests() const { return max_inflight_requests_; }
  // The needs of a request for all outputs.
  const EnsembleNeeds& all() const { return all_; }
  // Fills the rest of `needs` for a request of the outputs whose entry in `needs.outputs` is 1.
  // Omits a step if none of its outputs is needed.
  void Prune(EnsembleNeeds& needs) const;

 private:
  using NameIndex = std::unordered_map<std::string, uint32_t>;

  uint32_t TensorIndex(NameIndex& index, const std::string& name);
  void AddSteps(const config::Ensembling& ensemble, const std::vector<StepModel>& models,
                NameIndex& index);
  void FindBehind();
  void FindWaiting(const std::vector<StepModel>& models);
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

// Compares an ensemble with the models of its steps, one of `models` for each step: types, shapes,
// missing and duplicate tensors, batch sizes. A model that is null is not known, and its step not
// compared.
config::ErrorList EnsembleStepErrors(const config::ModelConfig& ensemble,
                                     const std::vector<const config::ModelConfig*>& models);
// Returns the first of these errors.
base::Status CheckEnsembleSteps(const config::ModelConfig& ensemble,
                                const std::vector<const config::ModelConfig*>& models);

}  // namespace nereid::schedule
