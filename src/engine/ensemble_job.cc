// SPDX-License-Identifier: Apache-2.0
#include "engine/ensemble_job.h"

#include <utility>
#include <vector>

#include "schedule/ensemble_plan.h"

namespace nereid::engine {

base::Result<LoadJob> MakeEnsembleJob(const repository::ModelSource& source,
                                      const EnsembleEntry& entry, const FindLoaded& find) {
  auto resolved = std::make_shared<repository::ModelSource>(source);
  config::Ensembling ensemble = *source.config->ensemble_scheduling();
  LoadJob job;
  std::vector<std::shared_ptr<core::Model>>
      latest;  // the version whose configuration counts, per step
  std::vector<const config::ModelConfig*> configs;
  std::vector<schedule::StepModel> models;
  for (size_t i = 0; i < ensemble.step.size(); ++i) {
    config::Ensembling::Step& step = ensemble.step[i];
    step.model_namespace = entry.steps[i].name_space;
    job.parts.push_back(find(entry.steps[i], step.model_version));
    latest.push_back(find(entry.steps[i], -1));
    configs.push_back(&latest.back()->config());
    models.push_back({.is_decoupled = configs.back()->is_decoupled()});
  }
  resolved->config->scheduling_choice = std::move(ensemble);
  NEREID_RETURN_IF_ERROR(schedule::CheckEnsembleSteps(*resolved->config, configs));
  // Decoupled models that meet in one step are an error of the configuration, too.
  NEREID_RETURN_IF_ERROR(schedule::EnsemblePlan::Compile(*resolved->config, models).status());
  job.source = std::move(resolved);
  return job;
}

}  // namespace nereid::engine
