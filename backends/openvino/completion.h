// SPDX-License-Identifier: Apache-2.0
// Completes a model's configuration from its tensors.
#pragma once

#include <cstdint>
#include <string>

#include "backend_kit/config.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

// Whether inputs or outputs are not listed in the configuration.
bool NeedsCompletion(const backend::ModelConfig& config);

// Adds what is not in the configuration. `max_batch_size` is used if it has none; a dynamic batcher
// is added with it, and also where the file's layouts name the batch. Fails for tensors that a
// configuration cannot describe.
backend::Error Complete(const Signature& signature, int64_t max_batch_size,
                        const std::string& model, backend::ModelConfig* config);

// Whether the file's layouts call all first dimensions the batch.
bool HasBatchLayout(const Signature& signature);

// Whether all first dimensions are `rows`, which is -1 for variable ones.
bool HasBatchOf(const Signature& signature, int64_t rows);

}  // namespace nereid::openvino
