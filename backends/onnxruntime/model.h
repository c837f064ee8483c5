// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration and one session for each device with instances, so that
// weights are in memory only once per device.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/config.h"
#include "backend_kit/memory_use.h"
#include "backend_kit/mutex.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// A model. Thread-safe: instances may be initialised concurrently. Backends for other formats that
// ONNX Runtime can run derive from it.
class Model {
 public:
  virtual ~Model() = default;
  // Reads the configuration and completes it if the server permits. `environment` outlives the
  // model.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        const Environment& environment);

  // Returns the session that instances at `placement` share. The first call loads it and validates
  // it against the configuration.
  backend::Result<std::shared_ptr<Session>> SessionAt(const Placement& placement);

  const std::string& name() const { return name_; }
  const backend::ModelConfig& config() const { return config_; }
  const Settings& settings() const { return settings_; }

 protected:
  Model(TRITONBACKEND_Model* handle, const Environment& environment, std::string name,
        std::string folder, backend::ModelConfig config, Settings settings)
      : handle_(handle),
        environment_(environment),
        name_(std::move(name)),
        folder_(std::move(folder)),
        config_(std::move(config)),
        settings_(std::move(settings)) {}

  // Completes the configuration from the model, which it loads.
  backend::Error AutoComplete(TRITONBACKEND_Model* handle);
  const Environment& environment() const { return environment_; }
  const std::string& folder() const { return folder_; }

  // Decides whether the completed configuration has batches, and reports the reason to the server
  // and its log.
  virtual backend::Result<backend::BatchVerdict> ChooseBatching(TRITONBACKEND_Model* handle,
                                                                const Session& session);
  // Checks that the configuration fits the session's model.
  virtual backend::Error Check(const Session& session) const;
  // Makes a session from the model's file.
  virtual backend::Result<std::shared_ptr<Session>> Load(const Placement& placement);

 private:
  // Returns the file to load: <version folder>/<model filename>, or model.onnx in it if that is a
  // folder.
  backend::Result<std::string> ModelPath() const;
  // Keeps a session for instances, and tells the server how much memory all of them hold.
  void Keep(std::shared_ptr<Session> session) NEREID_KIT_REQUIRES(sessions_mutex_);

  TRITONBACKEND_Model* const handle_;
  const Environment& environment_;
  const std::string name_;
  const std::string folder_;     // of this version
  backend::ModelConfig config_;  // constant after Create
  const Settings settings_;

  backend::Mutex sessions_mutex_;
  // Shared with the instances.
  std::vector<std::shared_ptr<Session>> sessions_ NEREID_KIT_GUARDED_BY(sessions_mutex_);
  std::vector<backend::MemoryUse> memory_ NEREID_KIT_GUARDED_BY(sessions_mutex_);
};

}  // namespace nereid::onnxruntime
