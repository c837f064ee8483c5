// SPDX-License-Identifier: Apache-2.0
// What the Python backend knows of itself, and of one model: where its files are, how its workers
// are started, and its configuration, which the model may complete.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend_kit/config.h"
#include "backend_kit/mutex.h"
#include "nereid/backend_inputs.h"
#include "python_backend/environment.h"
#include "python_backend/outputs.h"
#include "python_backend/settings.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Shared by all models. Immutable, but for its parts.
struct Backend {
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  Settings settings;
  std::string folder;        // with the worker's scripts
  std::string model_folder;  // whose model.py all models run; empty when each has its own
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<Environments> environments;
};

// Immutable once created, but for the spare worker and those that lend memory.
class Model {
 public:
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  const std::string& name() const { return name_; }
  uint64_t version() const { return version_; }
  const std::string& repository() const { return repository_; }
  bool is_decoupled() const { return is_decoupled_; }
  int64_t max_batch_size() const { return config_.max_batch_size(); }
  // What its responses have to be.
  const OutputRules& outputs() const { return outputs_; }
  // As JSON.
  std::string config_text() const;
  // Null where the server does not let backends call it.
  TRITONSERVER_Server* server() const { return server_; }

  ~Model();

  // From now on requests may be received into the memory shared with this worker. Thread-safe.
  void AddLender(const std::string& instance, const std::shared_ptr<Worker>& worker);

  // A worker that is to be told to initialize; `name` is its name in messages.
  backend::Result<std::shared_ptr<Worker>> GetWorker(const std::string& name,
                                                     Worker::CallHandler on_call,
                                                     Worker::DeathHandler on_death);

 private:
  Model(Backend& backend, backend::ModelConfig config)
      : backend_(backend), config_(std::move(config)) {}

  backend::Error Locate(TRITONBACKEND_Model* handle);
  backend::Error ReadParameters();
  backend::Error Complete(TRITONBACKEND_Model* handle);
  // Whether requests of this model can be received where its workers want them.
  bool LendsInputs() const;
  bool Lend(uint64_t size, NEREIDBACKEND_LentInput* lent);
  // The worker that a request most likely goes to: the first that has the fewest on their way.
  std::shared_ptr<Worker> FindLender();
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
  Environment environment_;
  // What was started to complete the configuration of a model that does not complete any.
  backend::Mutex spare_mutex_;
  std::shared_ptr<Worker> spare_ NEREID_KIT_GUARDED_BY(spare_mutex_);
  backend::Mutex lenders_mutex_;
  // By the names of their instances.
  std::map<std::string, std::weak_ptr<Worker>> lenders_ NEREID_KIT_GUARDED_BY(lenders_mutex_);
};

}  // namespace nereid::python
