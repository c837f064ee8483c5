// SPDX-License-Identifier: Apache-2.0
// Loading ensembles, once everything that they contain has been tried. Texts:
// core/src/model_repository_manager/model_repository_manager.cc of Triton.
#include <fmt/core.h>

#include "engine/life_cycle.h"
#include "schedule/ensemble_plan.h"

namespace nereid::engine {

std::shared_ptr<core::Model> LifeCycle::LoadedModel(const std::string& name,
                                                    int64_t version) const {
  base::MutexLock lock(mutex_);
  std::shared_ptr<core::Model> model;
  for (auto it = loaded_.lower_bound({name, 0}); it != loaded_.end() && it->first.name == name;
       ++it) {
    if (version < 0 || it->first.version == version) model = it->second->model;
  }
  return model;
}

base::Status LifeCycle::CheckPart(const EnsembleEntry& entry, const std::string& model,
                                  const std::set<int64_t>& versions) const {
  const std::string start = fmt::format("ensemble '{}' depends on '{}' ", entry.name, model);
  if (LoadedModel(model, -1) == nullptr) {
    base::MutexLock lock(mutex_);
    const auto found = records_.find(model);
    std::string reason = found == records_.end() ? std::string() : found->second.reason;
    if (found != records_.end() && invalid_ensembles_.contains(model)) {
      return base::InvalidArgumentError(
          fmt::format("{}which is not valid. Model '{}' failed with error: {}", start, model,
                      reason));
    }
    if (found != records_.end()) {
      for (const auto& [number, version] : found->second.versions) {
        reason += fmt::format("version {} is at {} state: {};", number, StateName(version.state),
                              version.reason);
      }
    }
    return base::InvalidArgumentError(
        fmt::format("{}which has no loaded version. Model '{}' loading failed with error: {}",
                    start, model, reason));
  }
  for (const int64_t version : versions) {
    if (version < 0 || LoadedModel(model, version) != nullptr) continue;
    return base::InvalidArgumentError(
        fmt::format("{}whose required version {} is not loaded.", start, version));
  }
  return base::OkStatus();
}

base::Status LifeCycle::CheckParts(const EnsembleEntry& entry) const {
  NEREID_RETURN_IF_ERROR(entry.status);
  for (const auto& [model, versions] : entry.models) {
    NEREID_RETURN_IF_ERROR(CheckPart(entry, model, versions));
  }
  return base::OkStatus();
}

void LifeCycle::LoadEnsemble(const repository::ModelSource& source, const EnsembleEntry& entry) {
  base::Status status = CheckParts(entry);
  std::vector<std::shared_ptr<core::Model>> models;      // of the steps
  std::vector<std::shared_ptr<core::Model>> latest;      // whose configurations count
  std::vector<const config::ModelConfig*> configs;
  if (status.ok()) {
    for (const config::Ensembling::Step& step : source.config->ensemble_scheduling()->step) {
      models.push_back(LoadedModel(step.model_name, step.model_version));
      latest.push_back(LoadedModel(step.model_name, -1));
      configs.push_back(&latest.back()->config());
    }
    status = schedule::CheckEnsembleSteps(*source.config, configs);
  }
  if (status.ok()) {
    // Whether decoupled models meet in one step is a fault of the configuration, too.
    std::vector<bool> decoupled;
    for (const config::ModelConfig* config : configs) decoupled.push_back(config->is_decoupled());
    status = schedule::EnsemblePlan::Compile(*source.config, decoupled).status();
  }
  base::Result<std::set<int64_t>> versions = std::set<int64_t>();
  if (status.ok()) {
    versions = repository::VersionsToServe(source);
    status = versions.status();
  } else {
    base::MutexLock lock(mutex_);
    invalid_ensembles_.insert(entry.name);
  }
  if (!status.ok()) return SetModelFailure(entry.name, std::string(status.message()));
  LoadVersions(source, *versions, [&](int64_t version) -> base::Result<LoadedVersion> {
    NEREID_ASSIGN_OR_RETURN(LoadedVersion loaded, loader_.LoadEnsemble(source, version, models));
    loaded.ensemble_depth = entry.depth;
    return loaded;
  });
}

}  // namespace nereid::engine
