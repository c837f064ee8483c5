// SPDX-License-Identifier: Apache-2.0
// Adds to a configuration what a signature of a SavedModel says: tensors, types, dimensions.
#pragma once

#include <optional>
#include <string>

#include "backend_kit/config.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// Whether all first dimensions are variable, as far as they are known.
bool CanBatch(const Signature& signature);
// Returns a tensor because of which no configuration can make the model batched: as CanBatch, but
// inputs without dimensions may have those of the configuration.
std::optional<std::string> FindUnbatched(const Signature& signature);

// What the dimensions in a configuration say of batches: those of a batched model have no first
// one.
enum class BatchHint { kNone, kBatched, kUnbatched };

// Fails for dimensions that contradict each other.
backend::Result<BatchHint> HintOf(const backend::ModelConfig& config, const Signature& signature,
                                  const std::string& model);

// Adds what is missing, also a dynamic batcher where there are batches and no scheduler is chosen;
// `config` has its max_batch_size. Fails for tensors that a configuration cannot describe.
backend::Error Complete(const Signature& signature, const std::string& model,
                        backend::ModelConfig* config);

}  // namespace nereid::tensorflow
