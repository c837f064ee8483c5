// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

namespace {

// All names of one element type.
struct Names {
  ONNXTensorElementDataType onnx;
  TRITONSERVER_DataType server;
  std::string_view config_name;
  std::string_view server_name;
  std::string_view onnx_name;
};

constexpr Names kUnknown = {ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, TRITONSERVER_TYPE_INVALID,
                            "TYPE_INVALID", "<invalid>", "UNDEFINED"};

constexpr Names kTable[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, TRITONSERVER_TYPE_FP32, "TYPE_FP32", "FP32", "FLOAT"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, TRITONSERVER_TYPE_FP64, "TYPE_FP64", "FP64", "DOUBLE"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, TRITONSERVER_TYPE_FP16, "TYPE_FP16", "FP16", "FLOAT16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, TRITONSERVER_TYPE_BF16, "TYPE_BF16", "BF16",
     "BFLOAT16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, TRITONSERVER_TYPE_INT8, "TYPE_INT8", "INT8", "INT8"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, TRITONSERVER_TYPE_INT16, "TYPE_INT16", "INT16", "INT16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, TRITONSERVER_TYPE_INT32, "TYPE_INT32", "INT32", "INT32"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, TRITONSERVER_TYPE_INT64, "TYPE_INT64", "INT64", "INT64"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, TRITONSERVER_TYPE_UINT8, "TYPE_UINT8", "UINT8", "UINT8"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, TRITONSERVER_TYPE_UINT16, "TYPE_UINT16", "UINT16",
     "UINT16"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, TRITONSERVER_TYPE_UINT32, "TYPE_UINT32", "UINT32",
     "UINT32"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, TRITONSERVER_TYPE_UINT64, "TYPE_UINT64", "UINT64",
     "UINT64"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, TRITONSERVER_TYPE_BOOL, "TYPE_BOOL", "BOOL", "BOOL"},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, TRITONSERVER_TYPE_BYTES, "TYPE_STRING", "BYTES",
     "STRING"},
};

template <typename Match>
const Names& Lookup(Match&& match) {
  for (const Names& names : kTable) {
    if (match(names)) {
      return names;
    }
  }
  return kUnknown;
}

const Names& Of(ONNXTensorElementDataType type) {
  return Lookup([type](const Names& names) { return names.onnx == type; });
}

}  // namespace

TRITONSERVER_DataType ToServerType(ONNXTensorElementDataType type) { return Of(type).server; }

ONNXTensorElementDataType FromServerType(TRITONSERVER_DataType type) {
  return Lookup([type](const Names& names) { return names.server == type; }).onnx;
}

std::string_view ConfigName(ONNXTensorElementDataType type) { return Of(type).config_name; }

ONNXTensorElementDataType FromConfigName(std::string_view name) {
  return Lookup([name](const Names& names) { return names.config_name == name; }).onnx;
}

std::string_view ServerName(ONNXTensorElementDataType type) { return Of(type).server_name; }

std::string_view OnnxName(ONNXTensorElementDataType type) { return Of(type).onnx_name; }

}  // namespace nereid::onnxruntime
