// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration, and one engine for each device with instances, so that
// weights are in memory only once per device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "backend_kit/mutex.h"
#include "tensorrt_backend/binding.h"
#include "tensorrt_backend/engine.h"
#include "tensorrt_backend/settings.h"

namespace nereid::tensorrt {

// What all models of the backend share. Thread-safe.
class Backend {
 public:
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  // The driver, opened and initialised by the first model. A failure is not kept: a driver may be
  // installed while the server runs.
  backend::Result<std::shared_ptr<const Driver>> GetDriver();
  // The library for a plan. REQUIRES: GetDriver has succeeded.
  backend::Result<std::shared_ptr<const Library>> LibraryFor(const PlanHeader& plan);
  bool is_version_compatible() const { return libraries_.is_version_compatible(); }

 private:
  explicit Backend(const BackendSettings& settings)
      : plugins_(settings.plugins), libraries_(settings.library, settings.is_version_compatible) {}

  void OpenPlugins() NEREID_KIT_REQUIRES(mutex_);

  backend::Mutex mutex_;
  std::shared_ptr<const Driver> driver_ NEREID_KIT_GUARDED_BY(mutex_);
  std::vector<std::string> plugins_ NEREID_KIT_GUARDED_BY(mutex_);  // those not opened yet
  Libraries libraries_;
};

// A model. Thread-safe: instances may be initialised concurrently.
class Model {
 public:
  // Reads the configuration and the plan's header, and completes the configuration if the server
  // permits. `backend` outlives the model.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  // Returns the engine that all instances on a device (and core of a deep learning accelerator; -1:
  // none) share. The first call loads it.
  backend::Result<std::shared_ptr<const Engine>> EngineOn(int device, int dla_core);

  const std::string& name() const { return name_; }
  const std::shared_ptr<const Driver>& driver() const { return driver_; }
  const backend::ModelConfig& config() const { return config_; }
  const Settings& settings() const { return settings_; }
  const backend::Ports& ports() const { return ports_; }

 private:
  Model(Backend& backend, std::string name, std::string folder, backend::ModelConfig config,
        Settings settings)
      : backend_(backend),
        name_(std::move(name)),
        folder_(std::move(folder)),
        config_(std::move(config)),
        settings_(std::move(settings)) {}

  // The plan for devices of this kind; fails if there is none.
  backend::Result<std::string> PlanPath(const std::string& filename) const;
  // Fails for a file that is not a plan, before the driver is needed.
  backend::Error CheckPlans() const;
  backend::Error AutoComplete(TRITONBACKEND_Model* handle);
  backend::Result<std::shared_ptr<const Engine>> Load(int device, int dla_core);

  Backend& backend_;
  const std::string name_;
  const std::string folder_;
  std::shared_ptr<const Driver> driver_;  // constant after Create, like the following
  backend::ModelConfig config_;
  const Settings settings_;
  backend::Ports ports_;
  Logger logger_;

  // Held while an engine is loaded: of several instances on a device the others wait for it.
  backend::Mutex mutex_;
  std::map<std::pair<int, int>, std::shared_ptr<const Engine>> engines_
      NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::tensorrt
