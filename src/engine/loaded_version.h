// SPDX-License-Identifier: Apache-2.0
// A version of a model that the life cycle holds: the servable and what it was made from.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "config/complete.h"
#include "core/model.h"
#include "engine/model_factory.h"
#include "repository/model_source.h"

namespace nereid::engine {

// Thread-compatible; any thread may read const members.
struct LoadedVersion {
  // `made_of` has the model of each step of an ensemble.
  LoadedVersion(std::shared_ptr<const repository::ModelSource> made_from,
                std::unique_ptr<ServableModel> made,
                const std::vector<std::shared_ptr<core::Model>>& made_of = {});

  const repository::ModelId id;
  // The models that the steps of an ensemble name; empty for other models.
  const std::set<repository::ModelId> steps;
  // What an ensemble was made of. Not owned, because a model that was replaced must be free to go.
  const std::vector<std::weak_ptr<core::Model>> parts;
  // Destroyed after the servable, because the backend uses the files until then.
  const std::shared_ptr<repository::ModelFiles> files;
  // The source that the version was loaded from or, after a change of the instances, the source of
  // that change.
  std::shared_ptr<const repository::ModelSource> source;
  const std::unique_ptr<ServableModel> servable;
  // The configuration after the last change of the instances; null if there was none.
  std::shared_ptr<const config::ModelConfig> changed_config;
  // Whether model tables still find this version for the steps of ensembles when it is out of
  // service. True for unloaded versions, false for replaced ones.
  bool serves_steps = false;

  const std::shared_ptr<core::Model>& model() const { return servable->model(); }
  // Returns the configuration with the current instances.
  std::shared_ptr<const config::ModelConfig> CurrentConfig() const {
    return changed_config != nullptr ? changed_config : model()->shared_config();
  }
  // Whether an ensemble was made of these models, one for each step.
  bool IsMadeOf(const std::vector<std::shared_ptr<core::Model>>& models) const;
  // Returns the files it was loaded from and, after a change of the instances, those of the change.
  std::set<std::shared_ptr<repository::ModelFiles>> FilesInUse() const;
};
using LoadedVersions = std::vector<std::unique_ptr<LoadedVersion>>;

// Returns the change that brings `loaded` to the state of `source`.
config::ConfigChange ChangeNeeded(const LoadedVersion& loaded,
                                  const repository::ModelSource& source);

}  // namespace nereid::engine
