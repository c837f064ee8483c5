// SPDX-License-Identifier: Apache-2.0
// The names of the C API's enumerators.
#include "tensor/data_type.h"
#include "triton/core/tritonserver.h"

namespace {

using nereid::tensor::DataType;

// The values of both enumerations are the same; others become kInvalid.
static_assert(nereid::tensor::kDataTypeCount == TRITONSERVER_TYPE_BF16 + 1);
DataType ToDataType(TRITONSERVER_DataType type) {
  const auto value = static_cast<int>(type);
  return value >= 0 && value < nereid::tensor::kDataTypeCount ? static_cast<DataType>(value)
                                                              : DataType::kInvalid;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype) {
  // The names are literals and therefore zero-terminated.
  return nereid::tensor::ProtocolName(ToDataType(datatype)).data();
}

TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* dtype) {
  return static_cast<TRITONSERVER_DataType>(
      nereid::tensor::FromProtocolName(dtype).value_or(DataType::kInvalid));
}

uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype) {
  return static_cast<uint32_t>(nereid::tensor::ElementSize(ToDataType(datatype)));
}

const char* TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype) {
  switch (memtype) {
    case TRITONSERVER_MEMORY_CPU:
      return "CPU";
    case TRITONSERVER_MEMORY_CPU_PINNED:
      return "CPU_PINNED";
    case TRITONSERVER_MEMORY_GPU:
      return "GPU";
  }
  return "<invalid>";
}

const char* TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype) {
  switch (paramtype) {
    case TRITONSERVER_PARAMETER_STRING:
      return "STRING";
    case TRITONSERVER_PARAMETER_INT:
      return "INT";
    case TRITONSERVER_PARAMETER_BOOL:
      return "BOOL";
    case TRITONSERVER_PARAMETER_DOUBLE:
      return "DOUBLE";
    case TRITONSERVER_PARAMETER_BYTES:
      return "BYTES";
  }
  return "<invalid>";
}

const char* TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind) {
  switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
      return "AUTO";
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
      return "CPU";
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
      return "GPU";
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
      return "MODEL";
  }
  return "<invalid>";
}

}  // extern "C"
#pragma GCC visibility pop
