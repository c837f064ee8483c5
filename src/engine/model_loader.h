// SPDX-License-Identifier: Apache-2.0
// Makes one servable model version out of a configuration and a folder, and takes it apart again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "backend_host/backend_model.h"
#include "base/status.h"
#include "base/thread_reaper.h"
#include "base/timers.h"
#include "core/model.h"
#include "core/response_cache.h"
#include "core/submitter.h"
#include "engine/metrics_config.h"
#include "repository/scanner.h"
#include "schedule/instance_change.h"
#include "schedule/rate_limiter.h"

namespace nereid::engine {

class WarmUp;

// A loaded version. Destroying it finalizes instances and model; nobody may use it any more by
// then.
struct LoadedVersion {
  // Destroyed last: the files are in use until the backend has let go of them.
  std::shared_ptr<repository::ModelFiles> files;
  // Outlives the model's instances; null for an ensemble.
  std::unique_ptr<backend_host::BackendModel> backend;
  std::shared_ptr<core::Model> model;  // shared with model tables, which only name it
  // The model's scheduler, where its instances may change; null for an ensemble.
  schedule::InstanceHost* instances = nullptr;
  // Whether what is being done to the version is still wanted, for its warm-ups.
  std::shared_ptr<std::function<base::Status()>> check_wanted;
  // The configuration as it is after changes of the instances; null: none was made.
  std::shared_ptr<const config::ModelConfig> changed_config;
  std::chrono::nanoseconds load_duration{0};
  int ensemble_depth =
      0;  // 0: no ensemble; else how deep ensembles are nested in it, itself included
  std::shared_ptr<const repository::ModelSource> source;  // what it was made from, and its folder

  LoadedVersion() = default;
  LoadedVersion(LoadedVersion&&) = default;
  LoadedVersion& operator=(LoadedVersion&&) = delete;
  ~LoadedVersion();
};

struct ModelLoaderOptions {
  base::Timers* timers = nullptr;                 // set by the engine; outlives what is loaded
  schedule::RateLimiter* rate_limiter = nullptr;  // the same; null: rates are not limited
  base::ThreadReaper* reaper = nullptr;           // the same
  core::Submitter* submitter = nullptr;           // set by the engine, for ensembles
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
  MetricsConfig metrics;  // set by the engine
};

// Thread-safe.
class ModelLoader {
 public:
  // `libraries` outlives the loader and what it loads.
  ModelLoader(ModelLoaderOptions options, backend_host::BackendLibraries& libraries)
      : options_(std::move(options)), libraries_(libraries) {}

  // Says whether a load is still wanted; an error ends it.
  using CheckWanted = std::function<base::Status()>;
  // Needs source.config.ok(). `check_wanted` is asked again and again until this returns.
  base::Result<LoadedVersion> Load(const repository::ModelSource& source, int64_t version,
                                   CheckWanted check_wanted) const;
  // Brings the instances of `loaded`, which nobody else changes and whose model is pinned, to what
  // `source` says; requests go on meanwhile. The configuration as it is then; an error, and nothing
  // changed, when a new instance fails.
  base::Result<std::shared_ptr<const config::ModelConfig>> ChangeInstances(
      const LoadedVersion& loaded, const repository::ModelSource& source,
      CheckWanted check_wanted) const;
  // As Load, for an ensemble. `models`: one for each step, of the version the step names.
  base::Result<LoadedVersion> LoadEnsemble(
      const repository::ModelSource& source, int64_t version,
      const std::vector<std::shared_ptr<core::Model>>& models) const;
  // Where models that ask for it keep their responses; null: nowhere. Outlives what is loaded.
  // Before anything is loaded.
  void SetResponseCache(core::ResponseCache* cache) { response_cache_ = cache; }

 private:
  void LogResources() const;
  // Has the model collect what its metrics need beyond counters.
  void Observe(core::Model& model) const;
  // The scheduler of `model`, with the cache in front of it where that is wanted.
  std::unique_ptr<core::Scheduler> AddCache(const core::Model& model,
                                            std::unique_ptr<core::Scheduler> scheduler) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeScheduler(
      const repository::ModelSource& source, LoadedVersion& loaded) const;
  base::Result<std::unique_ptr<core::Scheduler>> MakeSequenceScheduler(
      const repository::ModelSource& source, LoadedVersion& loaded,
      std::function<base::Status(core::Instance&)> warm_up) const;

  const ModelLoaderOptions options_;
  backend_host::BackendLibraries& libraries_;
  core::ResponseCache* response_cache_ = nullptr;
};

}  // namespace nereid::engine
