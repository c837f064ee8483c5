// SPDX-License-Identifier: Apache-2.0
// Compares a model's configuration with the tensors of its engine, and completes a configuration.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/ports.h"
#include "tensorrt_backend/engine.h"

namespace nereid::tensorrt {

// Positions of the configuration's tensors among the engine's. Immutable.
struct Binding {
  std::vector<size_t> inputs;   // of each input of the ports
  std::vector<size_t> outputs;  // of each output of the ports
};

// Finds the tensors by their names, and checks their types and shapes. `owner` names the instance
// in error texts. Fails, with Triton's texts, if the configuration does not fit the engine.
backend::Result<Binding> Bind(const backend::Ports& ports, const backend::ModelConfig& config,
                              const std::vector<TensorInfo>& tensors, const std::string& model,
                              const std::string& owner);

// Adds to the configuration what it lacks: the batch size, a scheduler, inputs and outputs. Fails
// if what it has does not fit the engine. `profiles` are those of the instances.
backend::Error Complete(const Engine& engine, const std::vector<int>& profiles,
                        const std::string& model, backend::ModelConfig* config);

}  // namespace nereid::tensorrt
