// SPDX-License-Identifier: Apache-2.0
// Completes a model configuration from the ONNX model's own description.
#pragma once

#include <string>

#include "backend_kit/config.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Whether inputs or outputs are missing and must be completed.
bool NeedsCompletion(const backend::ModelConfig& config);

// Fills in missing inputs, outputs, max_batch_size (`generated_max_batch_size`, 0 for a model that
// is not batched) and dynamic_batching (if there are batches and no scheduler is chosen). The
// user's settings stay. Fails if the configuration requires batches that the model cannot accept.
backend::Error Complete(const std::string& model_name, const Signature& signature,
                        int generated_max_batch_size, backend::ModelConfig* config);

}  // namespace nereid::onnxruntime
