// SPDX-License-Identifier: Apache-2.0
// The dependencies of ensembles and the order in which they can be loaded. Pure logic on the
// scanned configurations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "repository/model_source.h"

namespace nereid::engine {

// Deeper than any useful nesting, and shallow enough for any thread's stack, because a request
// descends through all levels at once.
inline constexpr int kMaxEnsembleDepth = 64;

using repository::ModelId;

// The models with valid configurations.
using ModelSources = std::map<ModelId, std::shared_ptr<const repository::ModelSource>>;

// One ensemble in the order of loading: its models, and whether it can be loaded at all.
struct EnsembleEntry {
  ModelId id;
  base::Status status;         // why it cannot be loaded, according to the configurations
  int depth = 1;               // 1: it contains no ensemble
  std::vector<ModelId> steps;  // the model of each step; incomplete if `status` is an error
  std::map<ModelId, std::set<int64_t>>
      models;  // the models of the steps with the versions that these name
};

// Returns the model that a step of an ensemble in `name_space` refers to: the one of its own
// namespace, or else the only one of that name.
std::optional<ModelId> FindStepModel(const ModelSources& sources, const std::string& name_space,
                                     const std::string& model_name);

// Returns the models of the steps of an ensemble, as far as they exist; empty for other models.
std::vector<ModelId> StepModels(const ModelSources& sources, const repository::ModelSource& source);

// Returns every ensemble of `sources`, each after those it contains. Status texts are Triton's:
// missing models, circular dependencies.
std::vector<EnsembleEntry> OrderEnsembles(const ModelSources& sources);

}  // namespace nereid::engine
