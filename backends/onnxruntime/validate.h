// SPDX-License-Identifier: Apache-2.0
// Checks that a model configuration and an ONNX model agree; users of Triton know the error texts.
#pragma once

#include <string>

#include "backend_kit/config.h"
#include "onnxruntime_backend/session.h"

namespace nereid::onnxruntime {

// Checks number, names, types and shapes of inputs, sequence controls, states, batch inputs and
// outputs.
backend::Error Validate(const std::string& model_name, const backend::ModelConfig& config,
                        const Signature& signature);

}  // namespace nereid::onnxruntime
