// SPDX-License-Identifier: Apache-2.0
// Compares a model's configuration with its tensors: which input of the configuration is which of
// the model, what has to be changed in the model, and completing a configuration.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/config.h"
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

// Whether inputs or outputs are not listed in the configuration.
bool NeedsCompletion(const backend::ModelConfig& config);

// Adds what is not in the configuration. `max_batch_size` is used if it has none. Fails for tensors
// that a configuration cannot describe.
backend::Error Complete(const Signature& signature, int64_t max_batch_size,
                        const std::string& model, backend::ModelConfig* config);

// Whether all first dimensions are variable.
bool HasBatchDimensions(const Signature& signature);

// Whether all first dimensions are `rows`.
bool HasBatchOf(const Signature& signature, int64_t rows);

}  // namespace nereid::openvino
