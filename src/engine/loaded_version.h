// SPDX-License-Identifier: Apache-2.0
// A version of a model that the life cycle holds: what serves, and what it was made from.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "config/complete.h"
#include "core/model.h"
#include "engine/model_factory.h"
#include "repository/model_source.h"

namespace nereid::engine {

// Thread-compatible; what is const may be read by any thread.
struct LoadedVersion {
  LoadedVersion(std::shared_ptr<const repository::ModelSource> made_from,
                std::unique_ptr<ServableModel> made);

  const repository::ModelId id;
  // The models that the steps of an ensemble name; none for another model.
  const std::set<repository::ModelId> steps;
  // Destroyed after what serves: the files are in use until the backend has let go of them.
  const std::shared_ptr<repository::ModelFiles> files;
  // The configuration and the folder of the version; after a change of the instances, those of the
  // change.
  std::shared_ptr<const repository::ModelSource> source;
  const std::unique_ptr<ServableModel> servable;
  // The configuration after changes of the instances; null: none was made.
  std::shared_ptr<const config::ModelConfig> changed_config;
  // Whether model tables still lead the steps of ensembles here, once it is out of service: so it
  // is with what was unloaded, and not with what another version has replaced.
  bool serves_steps = false;

  const std::shared_ptr<core::Model>& model() const { return servable->model(); }
  // The configuration as its instances are now.
  std::shared_ptr<const config::ModelConfig> CurrentConfig() const {
    return changed_config != nullptr ? changed_config : model()->shared_config();
  }
  // Two where its instances were changed: what it was loaded from, and what they are from.
  std::set<std::shared_ptr<repository::ModelFiles>> FilesInUse() const;
};
using LoadedVersions = std::vector<std::unique_ptr<LoadedVersion>>;

// What it takes to bring `loaded` to what `source` says.
config::ConfigChange ChangeNeeded(const LoadedVersion& loaded,
                                  const repository::ModelSource& source);

}  // namespace nereid::engine
