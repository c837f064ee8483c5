// SPDX-License-Identifier: Apache-2.0
// An isolated model: how its processes are started, and what the backend in them has made of its
// configuration.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "backend_kit/config.h"
#include "backend_kit/model_metric.h"
#include "backend_kit/mutex.h"
#include "isolation_backend/backend.h"
#include "isolation_profile/settings.h"
#include "python_backend/environment.h"
#include "python_backend/worker.h"

namespace nereid::isolation {

// What messages call the process of an isolated model.
inline constexpr const char* kProcess = "Isolated process";

// Has a worker do some work, with a text as payload and as result. An error that the backend in the
// worker returned has its code and its text.
backend::Result<std::string> RunText(
    python::Worker& worker, python::Work work, std::string_view text,
    python::WorkLine::Clock::time_point deadline = python::WorkLine::Clock::time_point::max());

// Immutable once created, except for the spare worker.
class Model {
 public:
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);
  ~Model();

  const std::string& name() const { return name_; }
  bool is_decoupled() const { return is_decoupled_; }
  // Counts a process that has died. Thread-safe.
  void CountDeath() const { backend::Increment(deaths_.get(), 1); }
  int64_t max_batch_size() const { return config_.max_batch_size(); }
  const Settings& settings() const { return settings_; }
  python::Watch& watch() const { return *backend_.watch; }

  // A process for an instance.
  struct Made {
    std::shared_ptr<python::Worker> worker;
    bool has_model = false;  // whether it has loaded the model
  };
  // Starts one, or returns the one that completed the configuration; `name` is its name in
  // messages.
  backend::Result<Made> GetWorker(const std::string& name, python::Worker::CallHandler on_call,
                                  python::Worker::DeathHandler on_death);
  // Loads the model in a worker that is ready.
  backend::Error Load(python::Worker& worker) const;

 private:
  Model(Backend& backend, backend::ModelConfig config)
      : backend_(backend), config_(std::move(config)) {}

  backend::Error Locate(TRITONBACKEND_Model* handle);
  // Loads the model in a first worker, which is kept for an instance, and completes the
  // configuration.
  backend::Error Complete(TRITONBACKEND_Model* handle);
  backend::Error TakeCompletion(TRITONBACKEND_Model* handle, const std::string& completion);
  std::string config_text() const;
  // Returns the backend's library, unless it comes with the model.
  std::string InstalledLibrary() const;
  // What the process may do, as confinement_text.h describes it.
  std::string ConfinementText() const;
  backend::Result<std::shared_ptr<python::Worker>> StartWorker(
      const std::string& name, python::Worker::CallHandler on_call,
      python::Worker::DeathHandler on_death) const;

  Backend& backend_;
  backend::ModelConfig config_;
  Settings settings_;
  std::string name_;
  std::string backend_name_;
  uint64_t version_ = 0;
  std::string folder_;
  std::shared_ptr<const python::TemporaryFolder> temporary_;
  std::string given_config_;  // what the backend gets, in every worker
  bool is_decoupled_ = false;
  backend::Metric deaths_;
  backend::Mutex spare_mutex_;
  std::shared_ptr<python::Worker> spare_ NEREID_KIT_GUARDED_BY(spare_mutex_);
};

}  // namespace nereid::isolation
