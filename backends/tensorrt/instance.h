// SPDX-License-Identifier: Apache-2.0
// One instance of a model on a GPU: gathers a batch on the device, executes the engine, and deals
// the outputs out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend_kit/gather.h"
#include "backend_kit/scatter.h"
#include "tensorrt_backend/execution.h"
#include "tensorrt_backend/model.h"
#include "tensorrt_backend/outputs.h"

namespace nereid::tensorrt {

// An instance. Confined to the thread that executes; different instances of one model run
// concurrently.
class Instance {
 public:
  // Makes contexts, memory and graphs on the instance's device. `model` outlives the instance.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  Instance(TRITONBACKEND_ModelInstance* handle, Model& model, std::string name, int device);

  backend::Error Prepare(std::shared_ptr<const Engine> engine);
  backend::Result<std::vector<Profile>> ReadProfiles(const Engine& engine) const;

  // Executes the batch; requests that cannot be executed fail in batch_.
  uint64_t Serve();
  // Executes the requests that gathering_ has read. Nothing uses their memory once it has returned.
  backend::Error ServeRead();
  backend::Error Compute();
  backend::Error ReadInputs();
  backend::Error ReadShapeValues(size_t i);
  backend::Error PutInputs();

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  const std::string name_;
  const int device_;
  const backend::Ports& ports_;
  Binding binding_;  // constant after Create
  std::unique_ptr<Execution> execution_;

  backend::Batch batch_;
  backend::Gathering gathering_;
  backend::Scattering scattering_;
  std::vector<InputCall> calls_;              // in the engine's order
  std::vector<std::vector<int64_t>> values_;  // of shape tensors, in the ports' order
  std::optional<Outputs> outputs_;            // there after Create
};

}  // namespace nereid::tensorrt
