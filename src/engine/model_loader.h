// SPDX-License-Identifier: Apache-2.0
// Makes servable model versions with backends, from a configuration and a folder.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "backend_host/backend_model.h"
#include "base/status.h"
#include "core/response_cache.h"
#include "core/sequence_states.h"
#include "core/submitter.h"
#include "engine/metrics_config.h"
#include "engine/model_factory.h"
#include "schedule/instance_change.h"
#include "schedule/instance_pool_options.h"
#include "schedule/producer_waits.h"

namespace nereid::engine {

// How models are loaded.
struct ModelLoaderOptions {
  // See schedule::InstancePoolOptions.
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
  bool limits_rate = false;  // whether instances compete for the rate limiter's resources
  // Whether models limit their requests in flight by their speed, if they do not say so themselves.
  bool adapts_concurrency = false;
  MetricsConfig metrics;
};

// Loads models with backends. Thread-safe. Outlives the models that it loads.
class ModelLoader final : public ModelFactory {
 public:
  // `context`, `submitter` (which runs the steps of ensembles) and `libraries` outlive the loader
  // and its models.
  ModelLoader(schedule::SchedulerContext context, core::Submitter& submitter,
              backend_host::BackendLibraries& libraries, ModelLoaderOptions options)
      : context_(context),
        submitter_(submitter),
        libraries_(libraries),
        options_(std::move(options)) {}

  base::Result<std::unique_ptr<ServableModel>> Load(const repository::ModelSource& source,
                                                    int64_t version,
                                                    CheckWanted check_wanted) const override;
  base::Result<std::unique_ptr<ServableModel>> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const override;
  // Sets the cache for models that enable it; null: no cache. It outlives the models. REQUIRES: no
  // model was loaded yet.
  void SetResponseCache(core::ResponseCache* cache) { response_cache_ = cache; }

 private:
  class BackendVersion;
  class EnsembleVersion;

  void LogResources() const;
  std::vector<schedule::NewInstance> TakeInstances(BackendVersion& loaded) const;
  // Converts an instance to what schedulers take; it has a claim if rates are limited.
  schedule::NewInstance Adopt(backend_host::BackendModel::MadeInstance made) const;
  // Has the model collect what its metrics need beyond counters.
  void Observe(core::Model& model) const;
  // Returns the scheduler of `model`, behind the cache if the model uses it.
  std::unique_ptr<core::Scheduler> AddCache(const core::Model& model,
                                            std::unique_ptr<core::Scheduler> scheduler) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeScheduler(
      const repository::ModelSource& source, BackendVersion& loaded) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeBatchScheduler(
      BackendVersion& loaded, schedule::InstancePoolOptions pool) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeSequenceScheduler(
      BackendVersion& loaded, std::shared_ptr<const core::StatePlan> states,
      schedule::InstancePoolOptions pool) const;

  const schedule::SchedulerContext context_;
  core::Submitter& submitter_;
  backend_host::BackendLibraries& libraries_;
  const ModelLoaderOptions options_;
  core::ResponseCache* response_cache_ = nullptr;
  mutable schedule::ProducerWaits producer_waits_;  // of all ensembles
};

}  // namespace nereid::engine
