// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration and one program for each device with instances, so that
// weights are in memory only once per device.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/config.h"
#include "backend_kit/mutex.h"
#include "backend_kit/ports.h"
#include "openvino_backend/binding.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

// What all models of the backend share. Thread-safe.
class Backend {
 public:
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  Runtime& runtime() const { return *runtime_; }
  // From --backend-config: the limit of batches in completed configurations, and the folder of
  // compiled models, which may be empty.
  int default_max_batch_size() const { return default_max_batch_size_; }
  const std::string& cache_dir() const { return cache_dir_; }

 private:
  Backend() = default;

  std::unique_ptr<Runtime> runtime_;
  int default_max_batch_size_ = 4;
  std::string cache_dir_;
};

// A model. Thread-safe: instances may be initialised concurrently.
class Model {
 public:
  // Reads the configuration and the file, and completes the configuration if the server permits.
  // `backend` outlives the model.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  // Returns the program that all instances on a device share. The first call compiles it.
  backend::Result<std::shared_ptr<Program>> ProgramAt(const std::string& device);

  const backend::ModelConfig& config() const { return config_; }
  const Settings& settings() const { return settings_; }
  // These are set once Create has returned.
  const backend::Ports& ports() const { return ports_; }
  const Binding& binding() const { return binding_; }

 private:
  Model(TRITONBACKEND_Model* handle, Backend& backend, std::string name,
        backend::ModelConfig config, Settings settings)
      : handle_(handle),
        backend_(backend),
        name_(std::move(name)),
        config_(std::move(config)),
        settings_(std::move(settings)) {}

  backend::Result<std::string> ModelPath(const std::string& folder) const;
  // Reads the file; the result has what the file says.
  backend::Result<std::unique_ptr<Source>> Read() const;
  // Completes the configuration and returns the program that was made to try out batches, if any.
  backend::Result<std::shared_ptr<Program>> AutoComplete(TRITONBACKEND_Model* handle,
                                                         Source& source);
  backend::Result<backend::BatchVerdict> ChooseBatching(TRITONBACKEND_Model* handle, Source& source,
                                                        std::shared_ptr<Program>* program);
  // The verdict on a model whose file calls the first dimensions the batch.
  backend::Result<backend::BatchVerdict> TryLayout(const Signature& signature) const;
  // Makes the source what the configuration says, and returns whether that changed it. Sets ports_,
  // binding_ and, where the file cannot have other batches than it was made for, fixed_batch of the
  // settings.
  backend::Result<bool> Adapt(std::unique_ptr<Source>& source);
  backend::Result<bool> ChangeSource(Source& source) const;

  void ReportMemory() const NEREID_KIT_REQUIRES(mutex_);

  TRITONBACKEND_Model* const handle_;
  Backend& backend_;
  const std::string name_;
  std::string path_;
  backend::ModelConfig config_;  // constant after Create, like the following
  Settings settings_;
  backend::Ports ports_;
  Binding binding_;

  backend::Mutex mutex_;
  // What Create has read, for the first program.
  std::unique_ptr<Source> source_ NEREID_KIT_GUARDED_BY(mutex_);
  // Shared with the instances.
  std::vector<std::pair<std::string, std::shared_ptr<Program>>> programs_
      NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::openvino
