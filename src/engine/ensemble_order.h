// SPDX-License-Identifier: Apache-2.0
// Which ensembles depend on which models, and the order in which they can be loaded. Pure logic on
// the scanned configurations.
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

// One more ensemble inside the other than anybody needs, few enough for any thread's stack: a
// request goes down all levels at once.
inline constexpr int kMaxEnsembleDepth = 64;

using repository::ModelId;

// Models whose configurations are valid.
using ModelSources = std::map<ModelId, std::shared_ptr<const repository::ModelSource>>;

// One ensemble in the order of loading: what it contains, and whether it can be loaded at all.
struct EnsembleEntry {
  ModelId id;
  base::Status status;         // why it cannot be loaded, as far as the configurations tell
  int depth = 1;               // 1: it contains no ensemble
  std::vector<ModelId> steps;  // the model of each step; with a status, of some
  std::map<ModelId, std::set<int64_t>> models;  // the same, each once with the versions named
};

// The model that a step of an ensemble in `name_space` means: that of its own namespace, or else
// the only one of that name.
std::optional<ModelId> FindStepModel(const ModelSources& sources, const std::string& name_space,
                                     const std::string& model_name);

// The models that the steps of an ensemble mean, as far as there are any; none for another model.
std::vector<ModelId> StepModels(const ModelSources& sources, const repository::ModelSource& source);

// Every ensemble of `sources`, each after those it contains. Status texts are Triton's: models that
// are missing, circular dependencies.
std::vector<EnsembleEntry> OrderEnsembles(const ModelSources& sources);

}  // namespace nereid::engine
