// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/types.h"

#include <array>
#include <string_view>

#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

namespace {

struct Type {
  int theirs;
  std::string_view name;
  uint64_t bytes = 0;  // of an element; without the contents of long texts
  TRITONSERVER_DataType ours = TRITONSERVER_TYPE_INVALID;
};

constexpr std::array<Type, 24> kTypes = {{
    {1, "DT_FLOAT", 4, TRITONSERVER_TYPE_FP32},
    {2, "DT_DOUBLE", 8, TRITONSERVER_TYPE_FP64},
    {3, "DT_INT32", 4, TRITONSERVER_TYPE_INT32},
    {4, "DT_UINT8", 1, TRITONSERVER_TYPE_UINT8},
    {5, "DT_INT16", 2, TRITONSERVER_TYPE_INT16},
    {6, "DT_INT8", 1, TRITONSERVER_TYPE_INT8},
    {kString, "DT_STRING", sizeof(c::Text), TRITONSERVER_TYPE_BYTES},
    {8, "DT_COMPLEX64", 8},
    {9, "DT_INT64", 8, TRITONSERVER_TYPE_INT64},
    {10, "DT_BOOL", 1, TRITONSERVER_TYPE_BOOL},
    {11, "DT_QINT8", 1},
    {12, "DT_QUINT8", 1},
    {13, "DT_QINT32", 4},
    {14, "DT_BFLOAT16", 2, TRITONSERVER_TYPE_BF16},
    {15, "DT_QINT16", 2},
    {16, "DT_QUINT16", 2},
    {17, "DT_UINT16", 2, TRITONSERVER_TYPE_UINT16},
    {18, "DT_COMPLEX128", 16},
    {19, "DT_HALF", 2, TRITONSERVER_TYPE_FP16},
    {20, "DT_RESOURCE", 0},
    {21, "DT_VARIANT", 0},
    {22, "DT_UINT32", 4, TRITONSERVER_TYPE_UINT32},
    {23, "DT_UINT64", 8, TRITONSERVER_TYPE_UINT64},
    {0, "DT_INVALID", 0},
}};

}  // namespace

TRITONSERVER_DataType OurType(int theirs) {
  for (const Type& type : kTypes) {
    if (type.theirs == theirs) {
      return type.ours;
    }
  }
  return TRITONSERVER_TYPE_INVALID;
}

int TheirType(TRITONSERVER_DataType ours) {
  for (const Type& type : kTypes) {
    if (type.ours == ours) {
      return type.theirs;
    }
  }
  return 0;
}

uint64_t BytesOfElement(int theirs) {
  for (const Type& type : kTypes) {
    if (type.theirs == theirs) {
      return type.bytes;
    }
  }
  return 0;
}

std::string TheirName(int theirs) {
  for (const Type& type : kTypes) {
    if (type.theirs == theirs) {
      return std::string(type.name);
    }
  }
  return backend::StrCat("type ", theirs);
}

}  // namespace nereid::tensorflow
