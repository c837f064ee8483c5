// SPDX-License-Identifier: Apache-2.0
// Makes one servable model version out of a configuration and a folder, and takes it apart again.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend_host/backend_libraries.h"
#include "backend_host/backend_model.h"
#include "base/status.h"
#include "base/timers.h"
#include "core/model.h"
#include "repository/scanner.h"
#include "schedule/rate_limiter.h"

namespace nereid::engine {

// A loaded version. Destroying it finalizes instances and model; nobody may use it any more by then.
struct LoadedVersion {
  std::unique_ptr<backend_host::BackendModel> backend;  // outlives the model's instances
  std::shared_ptr<core::Model> model;                   // shared with model tables, which only name it
  std::chrono::nanoseconds load_duration{0};

  LoadedVersion() = default;
  LoadedVersion(LoadedVersion&&) = default;
  LoadedVersion& operator=(LoadedVersion&&) = delete;
  ~LoadedVersion();
};

struct ModelLoaderOptions {
  base::Timers* timers = nullptr;  // set by the engine; outlives what is loaded
  schedule::RateLimiter* rate_limiter = nullptr;  // the same; null: rates are not limited
  std::chrono::nanoseconds inline_budget = std::chrono::microseconds(50);
};

// Thread-safe.
class ModelLoader {
 public:
  // `libraries` outlives the loader and what it loads.
  ModelLoader(ModelLoaderOptions options, backend_host::BackendLibraries& libraries)
      : options_(options), libraries_(libraries) {}

  // Needs source.config.ok().
  base::Result<LoadedVersion> Load(const repository::ModelSource& source, int64_t version) const;

 private:
  base::Result<std::unique_ptr<core::Scheduler>> MakeScheduler(
      const repository::ModelSource& source, LoadedVersion& loaded) const;

  const ModelLoaderOptions options_;
  backend_host::BackendLibraries& libraries_;
};

}  // namespace nereid::engine
