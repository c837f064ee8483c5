// SPDX-License-Identifier: Apache-2.0
// Completes a model configuration from what the ONNX model says about itself.
#pragma once

#include <string>

#include "backend_kit/config.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Whether anything is left to complete: inputs or outputs are missing.
bool NeedsCompletion(const backend::ModelConfig& config);

// Fills in missing inputs, outputs, max_batch_size (`generated_max_batch_size`, 0 for a model that
// is not to be batched) and dynamic_batching (for batches for which no scheduler is chosen). What
// the user wrote stays. Fails when the configuration asks for batches that the model cannot take.
backend::Error Complete(const std::string& model_name, const Signature& signature,
                        int generated_max_batch_size, backend::ModelConfig* config);

}  // namespace nereid::onnxruntime
