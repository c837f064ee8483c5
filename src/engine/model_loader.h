// SPDX-License-Identifier: Apache-2.0
// Makes servable model versions with backends, from a configuration and a folder.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "base/status.h"
#include "base/thread_reaper.h"
#include "base/timers.h"
#include "core/response_cache.h"
#include "core/submitter.h"
#include "engine/metrics_config.h"
#include "engine/model_factory.h"
#include "schedule/rate_limiter.h"

namespace nereid::engine {

// The settings and dependencies of a loader.
struct ModelLoaderOptions {
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
  MetricsConfig metrics;
};

// Loads models with backends. Thread-safe. Outlives the models that it loads.
class ModelLoader final : public ModelFactory {
 public:
  // The references outlive the loader and its models. `submitter` takes the requests that ensembles
  // make. `rate_limiter` is null if rates are not limited.
  ModelLoader(ModelLoaderOptions options, backend_host::BackendLibraries& libraries,
              base::Timers& timers, base::ThreadReaper& reaper, core::Submitter& submitter,
              schedule::RateLimiter* rate_limiter)
      : options_(std::move(options)),
        libraries_(libraries),
        timers_(timers),
        reaper_(reaper),
        submitter_(submitter),
        rate_limiter_(rate_limiter) {}

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
  // Makes the model collect what its metrics need besides counters.
  void Observe(core::Model& model) const;
  // Returns the scheduler of `model`, behind the cache if the model uses it.
  std::unique_ptr<core::Scheduler> AddCache(const core::Model& model,
                                            std::unique_ptr<core::Scheduler> scheduler) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeScheduler(
      const repository::ModelSource& source, BackendVersion& loaded) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeSequenceScheduler(
      const repository::ModelSource& source, BackendVersion& loaded,
      std::function<base::Status(core::Instance&)> warm_up) const;

  const ModelLoaderOptions options_;
  backend_host::BackendLibraries& libraries_;
  base::Timers& timers_;
  base::ThreadReaper& reaper_;
  core::Submitter& submitter_;
  schedule::RateLimiter* const rate_limiter_;
  core::ResponseCache* response_cache_ = nullptr;
};

}  // namespace nereid::engine
