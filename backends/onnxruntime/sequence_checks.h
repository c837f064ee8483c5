// SPDX-License-Identifier: Apache-2.0
// Checks of a sequence batcher's tensors against the model, for validate.h.
#pragma once

#include <cstddef>

#include "onnxruntime_backend/tensor_checks.h"

namespace nereid::onnxruntime {

// Checks the control inputs of a sequence batcher and returns how many inputs of the model they
// are.
backend::Result<size_t> CheckControls(const CheckContext& context,
                                      const rapidjson::Value& sequences);

// Checks the states of a sequence batcher and returns how many inputs of the model they are.
backend::Result<size_t> CheckStates(const CheckContext& context, const rapidjson::Value& sequences);

}  // namespace nereid::onnxruntime
