// SPDX-License-Identifier: Apache-2.0
// Outputs for a configuration that lists inputs only. The model's file has no types and shapes, so
// the model is called, with zeros of two sizes: what differs between the results is variable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend_kit/ports.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// An output as the configuration is to list it. Immutable.
struct FoundOutput {
  std::string name;  // OUTPUT__N, or the key of a result that is a dictionary
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> dims;  // without the batch dimension
};

// Calls the model twice. Fails if it does not accept zeros, and if its results cannot be outputs.
backend::Result<std::vector<FoundOutput>> FindOutputs(const Program& program,
                                                      const std::vector<ValueNode>& arguments,
                                                      const backend::Ports& ports,
                                                      bool is_batching);

}  // namespace nereid::pytorch
