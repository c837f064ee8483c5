// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_version.h"

#include <algorithm>
#include <utility>

namespace nereid::engine {
namespace {

// Returns the smaller of the two changes.
config::ConfigChange Lesser(config::ConfigChange a, config::ConfigChange b) {
  return static_cast<int>(a) < static_cast<int>(b) ? a : b;
}

std::set<repository::ModelId> StepsOf(const repository::ModelSource& source) {
  std::set<repository::ModelId> ids;
  const config::Ensembling* const ensemble = source.config->ensemble_scheduling();
  if (ensemble == nullptr) return ids;
  for (const config::Ensembling::Step& step : ensemble->step) {
    ids.emplace(step.model_namespace, step.model_name);
  }
  return ids;
}

}  // namespace

LoadedVersion::LoadedVersion(std::shared_ptr<const repository::ModelSource> made_from,
                             std::unique_ptr<ServableModel> made,
                             const std::vector<std::shared_ptr<core::Model>>& made_of)
    : id(made_from->id()),
      steps(StepsOf(*made_from)),
      parts(made_of.begin(), made_of.end()),
      files(made_from->files),
      source(std::move(made_from)),
      servable(std::move(made)) {}

bool LoadedVersion::IsMadeOf(const std::vector<std::shared_ptr<core::Model>>& models) const {
  return std::ranges::equal(
      parts, models, [](const auto& part, const auto& model) { return part.lock() == model; });
}

std::set<std::shared_ptr<repository::ModelFiles>> LoadedVersion::FilesInUse() const {
  std::set<std::shared_ptr<repository::ModelFiles>> in_use;
  for (const auto& some : {files, source->files}) {
    if (some != nullptr) in_use.insert(some);
  }
  return in_use;
}

config::ConfigChange ChangeNeeded(const LoadedVersion& loaded,
                                  const repository::ModelSource& source) {
  using enum config::ConfigChange;
  // An ensemble is always rebuilt, because it has nothing to load.
  if (source.config->ensemble_scheduling() != nullptr) return kReload;
  const repository::ModelSource& before = *loaded.source;
  const int64_t version = loaded.model()->version();
  const bool has_same_files = !source.repository.empty() &&
                              before.repository == source.repository &&
                              !before.timestamp.VersionIsOlderThan(source.timestamp, version) &&
                              before.config_provided == source.config_provided;
  if (!has_same_files) return kReload;
  const config::ConfigChange change = config::CompareConfigs(*before.config, *source.config);
  if (change != kReload || !loaded.servable->can_change_instances()) return change;
  // Clients send back the configuration that they read, which the backend has completed. It is then
  // unknown whether the batch size was given: over HTTP it is always present, over gRPC never when
  // it is 0.
  config::ModelConfig told = *loaded.CurrentConfig();
  told.gives_max_batch_size = source.config->gives_max_batch_size;
  return Lesser(change, config::CompareConfigs(told, *source.config));
}

}  // namespace nereid::engine
