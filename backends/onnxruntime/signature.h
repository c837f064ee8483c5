// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's description of a model's tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

// One tensor as the model declares it; -1 for variable dimensions. Immutable.
struct TensorInfo {
  std::string name;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols = {};  // names of the dimensions; empty for those without one
};

// Returns the tensor called `name`, or null.
const TensorInfo* FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name);

// An output of the model that is not a tensor, which responses cannot contain.
struct OtherOutput {
  std::string name;
  std::string_view kind;  // ONNX Runtime's name of the type
};

// All inputs and outputs of the model, in the model's order. Immutable.
struct Signature {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  std::vector<TensorInfo> initializers;  // constants that a request may override
  std::vector<OtherOutput> other_outputs = {};
};

// Returns the error for a configuration that requires `output`; it explains how to get a tensor
// instead.
backend::Error NoTensorError(const OtherOutput& output, const Signature& signature);

// Reads all inputs and outputs of a session. Fails if an input is not a tensor.
backend::Result<Signature> ReadSignature(const OrtSession* session);

}  // namespace nereid::onnxruntime
