// SPDX-License-Identifier: Apache-2.0
// The three names of an element type: ONNX Runtime's, the C API's and the model configuration's.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

#include "triton/core/tritonbackend.h"

namespace nereid::onnxruntime {

// TRITONSERVER_TYPE_INVALID for types the server has no name for (complex, 8-bit floats, …).
TRITONSERVER_DataType ToServerType(ONNXTensorElementDataType type);
// ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED for what is no type of the server.
ONNXTensorElementDataType FromServerType(TRITONSERVER_DataType type);
// "TYPE_FP32"; "TYPE_INVALID" for types the server has no name for.
std::string_view ConfigName(ONNXTensorElementDataType type);
// The reverse of ConfigName; undefined for any other text.
ONNXTensorElementDataType FromConfigName(std::string_view name);
// "FP32"; "BYTES" for strings, "<invalid>" for types the server has no name for.
std::string_view ServerName(ONNXTensorElementDataType type);
// ONNX's own spelling, "FLOAT"; "UNDEFINED" for types the server has no name for.
std::string_view OnnxName(ONNXTensorElementDataType type);

}  // namespace nereid::onnxruntime
