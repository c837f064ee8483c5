// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration and one session for each device its instances are on,
// so that weights are in memory once however many instances there are.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/config.h"
#include "backend_kit/mutex.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Thread-safe: instances may be initialised concurrently.
class Model {
 public:
  // Reads the configuration and completes it where the server lets us. `environment` outlives the
  // model.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        const Environment& environment);

  // The session that instances at `placement` share: loaded, and checked against the configuration,
  // for the first of them.
  backend::Result<std::shared_ptr<Session>> SessionAt(const Placement& placement);

  const std::string& name() const { return name_; }
  const backend::ModelConfig& config() const { return config_; }
  const Settings& settings() const { return settings_; }

 private:
  Model(const Environment& environment, std::string name, std::string folder,
        backend::ModelConfig config, Settings settings)
      : environment_(environment),
        name_(std::move(name)),
        folder_(std::move(folder)),
        config_(std::move(config)),
        settings_(std::move(settings)) {}

  backend::Error AutoComplete(TRITONBACKEND_Model* handle);
  // Whether the completed configuration will have batches, and why; told to the server and its log.
  backend::Result<backend::BatchVerdict> ChooseBatching(TRITONBACKEND_Model* handle,
                                                        const Session& session);
  // The file to load: <version folder>/<model filename>, or model.onnx in it if that is a folder.
  backend::Result<std::string> ModelPath() const;
  backend::Result<std::shared_ptr<Session>> Load(const Placement& placement);

  const Environment& environment_;
  const std::string name_;
  const std::string folder_;     // of this version
  backend::ModelConfig config_;  // constant after Create
  const Settings settings_;

  backend::Mutex sessions_mutex_;
  // Shared with the instances.
  std::vector<std::pair<Placement, std::shared_ptr<Session>>> sessions_
      NEREID_KIT_GUARDED_BY(sessions_mutex_);
};

}  // namespace nereid::onnxruntime
