// SPDX-License-Identifier: Apache-2.0
// The state of one model: where its files are, how its workers are started, and its configuration,
// which the model may complete.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "backend_kit/config.h"
#include "backend_kit/model_metric.h"
#include "backend_kit/mutex.h"
#include "isolation_profile/settings.h"
#include "python_backend/backend.h"
#include "python_backend/environment.h"
#include "python_backend/input_lenders.h"
#include "python_backend/outputs.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Immutable once created, except for the spare worker and the workers that lend memory.
class Model {
 public:
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  const std::string& name() const { return name_; }
  uint64_t version() const { return version_; }
  const std::string& repository() const { return repository_; }
  bool is_decoupled() const { return is_decoupled_; }
  // Counts a process that has died. Thread-safe.
  void CountDeath() const { backend::Increment(deaths_.get(), 1); }
  int64_t max_batch_size() const { return config_.max_batch_size(); }
  // Rules that the model's responses must follow.
  const OutputRules& outputs() const { return outputs_; }
  // The longest time without a response to a request; without it, any time.
  std::optional<std::chrono::milliseconds> timeout() const {
    return isolation_ ? isolation_->settings.timeout : std::nullopt;
  }
  Watch& watch() const { return backend_.watch; }
  // Returns the configuration as JSON.
  std::string config_text() const;
  // Returns the arguments of an instance's initialize, as JSON.
  std::string Arguments(const std::string& instance, const std::string& kind, int32_t device) const;
  // Null if the server does not let backends call it.
  TRITONSERVER_Server* server() const { return server_; }

  ~Model();

  // From now on requests may be received into the memory shared with this worker. Thread-safe.
  void AddLender(const std::string& instance, const std::shared_ptr<Worker>& worker) {
    lenders_.Add(instance, worker);
  }

  // Returns a worker that has not been told to initialize; `name` is its name in messages.
  backend::Result<std::shared_ptr<Worker>> GetWorker(const std::string& name,
                                                     Worker::CallHandler on_call,
                                                     Worker::DeathHandler on_death);

 private:
  Model(Backend& backend, backend::ModelConfig config)
      : backend_(backend), config_(std::move(config)) {}

  backend::Error Locate(TRITONBACKEND_Model* handle);
  backend::Error ReadParameters();
  // Reads what its workers may do, if the configuration says that they are to be confined.
  backend::Error ReadIsolation();
  // Returns the command that starts a worker, in its confinement.
  Command WorkerCommand(const std::string& name) const;
  backend::Error Complete(TRITONBACKEND_Model* handle);
  // Returns whether requests of this model can be received into the memory of its workers.
  bool LendsInputs() const;
  backend::Result<std::shared_ptr<Worker>> StartWorker(const std::string& name,
                                                       Worker::CallHandler on_call,
                                                       Worker::DeathHandler on_death) const;

  Backend& backend_;
  backend::ModelConfig config_;
  std::string name_;
  uint64_t version_ = 0;
  std::string repository_;  // the model's folder
  std::string file_;        // model.py
  bool is_decoupled_ = false;
  TRITONSERVER_Server* server_ = nullptr;
  OutputRules outputs_;
  backend::Metric deaths_;
  Environment environment_;
  // How workers are confined.
  struct Isolation {
    isolation::Settings settings;
    std::string program;
    std::shared_ptr<const TemporaryFolder> temporary;
  };
  std::optional<Isolation> isolation_;
  // The worker that completed the model's configuration, if the model turned out not to complete
  // any.
  backend::Mutex spare_mutex_;
  std::shared_ptr<Worker> spare_ NEREID_KIT_GUARDED_BY(spare_mutex_);
  InputLenders lenders_;
};

}  // namespace nereid::python
