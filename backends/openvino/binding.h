// SPDX-License-Identifier: Apache-2.0
// Compares a model's configuration with its tensors: which input of the configuration is which of
// the model, and what has to be changed in the model.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/ports.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

// Positions of the configuration's tensors in the model's signature. Immutable.
struct Binding {
  std::vector<size_t> inputs;   // of each input of the ports
  std::vector<size_t> outputs;  // of each output of the ports
};

// Finds the tensors by their names. Fails if one does not exist, or if inputs of the model are left
// over.
backend::Result<Binding> Bind(const backend::Ports& ports, const Signature& signature,
                              const std::string& model);

// Returns what must be changed in a model so that it has the configuration's types and, if the
// configuration has batches, a first dimension of any size (or, with settings.fixed_batch, of
// max_batch_size). Fails for types that cannot be converted.
backend::Result<Changes> NeededChanges(const backend::Ports& ports, const Binding& binding,
                                       const Signature& signature, int64_t max_batch_size,
                                       const Settings& settings, const std::string& model);

// Checks the shapes of a model after these changes.
backend::Error CheckShapes(const backend::Ports& ports, const Binding& binding,
                           const Signature& signature, int64_t max_batch_size,
                           const Settings& settings, const std::string& model);

}  // namespace nereid::openvino
