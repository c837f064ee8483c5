// SPDX-License-Identifier: Apache-2.0
// The three names of an element type: ONNX Runtime's, the C API's and the model configuration's.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

#include "triton/core/tritonbackend.h"

namespace nereid::onnxruntime {

// Returns TRITONSERVER_TYPE_INVALID for types that the server lacks (complex, 8-bit floats, …).
TRITONSERVER_DataType ToServerType(ONNXTensorElementDataType type);
// Returns ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED for anything that is not a type of the server.
ONNXTensorElementDataType FromServerType(TRITONSERVER_DataType type);
// Returns "TYPE_FP32", ...; "TYPE_INVALID" for types that the server lacks.
std::string_view ConfigName(ONNXTensorElementDataType type);
// Reverses ConfigName; returns undefined for any other text.
ONNXTensorElementDataType FromConfigName(std::string_view name);
// Returns "FP32", ...; "BYTES" for strings, "<invalid>" for types that the server lacks.
std::string_view ServerName(ONNXTensorElementDataType type);
// Returns ONNX's own spelling, "FLOAT", ...; "UNDEFINED" for types that the server lacks.
std::string_view OnnxName(ONNXTensorElementDataType type);

}  // namespace nereid::onnxruntime
