// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration, and its programs, one for each device. The instances
// on a device share it unless it changes itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/location.h"
#include "backend_kit/memory_use.h"
#include "backend_kit/mutex.h"
#include "backend_kit/ports.h"
#include "pytorch_backend/output_binding.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// What all models of the backend share: nothing but the preparation of PyTorch.
struct Backend {
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);
};

// A program with what the configuration makes of it. Immutable.
struct BoundProgram {
  std::shared_ptr<const Program> program;
  std::vector<ValueNode> arguments;  // refer to the program's signature
  std::vector<OutputPlace> outputs;  // one for each output of the ports
};

// A model. Thread-safe: instances may be initialised concurrently.
class Model {
 public:
  // Reads the configuration, and completes it with outputs if it has inputs only and the server
  // permits.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  // Returns the program for one more instance, loading it if it is not shared or is the first on
  // its device. Reports the memory that it takes.
  backend::Result<std::shared_ptr<const BoundProgram>> ProgramForInstance(
      TRITONBACKEND_ModelInstance* instance, const Device& device);

  const backend::ModelConfig& config() const { return config_; }
  const backend::Ports& ports() const { return ports_; }

 private:
  Model(TRITONBACKEND_Model* handle, backend::ModelLocation location, backend::ModelConfig config,
        Settings settings, backend::Ports ports, std::shared_ptr<const Program> opened)
      : handle_(handle),
        location_(std::move(location)),
        config_(std::move(config)),
        settings_(std::move(settings)),
        ports_(std::move(ports)),
        opened_(std::move(opened)) {}

  // Loads the program, unless `opened` is one on this device.
  backend::Result<std::shared_ptr<const BoundProgram>> Load(
      const Device& device, std::shared_ptr<const Program> opened) const;

  TRITONBACKEND_Model* const handle_;
  const backend::ModelLocation location_;
  const backend::ModelConfig config_;
  const Settings settings_;
  const backend::Ports ports_;

  backend::Mutex mutex_;
  // The one on the CPU that the configuration was completed with, for the first instance.
  std::shared_ptr<const Program> opened_ NEREID_KIT_GUARDED_BY(mutex_);
  // The first one that was loaded for each device, if it may be shared.
  std::vector<std::shared_ptr<const BoundProgram>> shared_ NEREID_KIT_GUARDED_BY(mutex_);
  // What those take.
  std::vector<backend::MemoryUse> memory_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::pytorch
