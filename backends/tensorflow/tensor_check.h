// SPDX-License-Identifier: Apache-2.0
// Whether one tensor of a configuration fits what the model's file says of it, with Triton's error
// texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "backend_kit/ports.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// Whether dimensions of a configuration, which cannot be none, may be those of a scalar.
bool HasOneElement(std::span<const int64_t> dims);

backend::Error CheckInput(const backend::InputPort& port, const TensorInfo& info, bool is_batching,
                          const std::string& model);
backend::Error CheckOutput(const backend::OutputPort& port, const TensorInfo& info,
                           bool is_batching, const std::string& model);
// Only the type; `what` is "input" or "output".
backend::Error CheckType(const char* what, const std::string& name, const TensorInfo& info,
                         TRITONSERVER_DataType type, const std::string& model);

}  // namespace nereid::tensorflow
