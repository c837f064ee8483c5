// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/types.h"

#include <array>
#include <string_view>

namespace nereid::tensorflow {

namespace {

struct Type {
  int theirs;
  std::string_view name;
  TRITONSERVER_DataType ours = TRITONSERVER_TYPE_INVALID;
};

constexpr std::array<Type, 24> kTypes = {{
    {1, "DT_FLOAT", TRITONSERVER_TYPE_FP32},
    {2, "DT_DOUBLE", TRITONSERVER_TYPE_FP64},
    {3, "DT_INT32", TRITONSERVER_TYPE_INT32},
    {4, "DT_UINT8", TRITONSERVER_TYPE_UINT8},
    {5, "DT_INT16", TRITONSERVER_TYPE_INT16},
    {6, "DT_INT8", TRITONSERVER_TYPE_INT8},
    {kString, "DT_STRING", TRITONSERVER_TYPE_BYTES},
    {8, "DT_COMPLEX64"},
    {9, "DT_INT64", TRITONSERVER_TYPE_INT64},
    {10, "DT_BOOL", TRITONSERVER_TYPE_BOOL},
    {11, "DT_QINT8"},
    {12, "DT_QUINT8"},
    {13, "DT_QINT32"},
    {14, "DT_BFLOAT16", TRITONSERVER_TYPE_BF16},
    {15, "DT_QINT16"},
    {16, "DT_QUINT16"},
    {17, "DT_UINT16", TRITONSERVER_TYPE_UINT16},
    {18, "DT_COMPLEX128"},
    {19, "DT_HALF", TRITONSERVER_TYPE_FP16},
    {20, "DT_RESOURCE"},
    {21, "DT_VARIANT"},
    {22, "DT_UINT32", TRITONSERVER_TYPE_UINT32},
    {23, "DT_UINT64", TRITONSERVER_TYPE_UINT64},
    {0, "DT_INVALID"},
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

std::string TheirName(int theirs) {
  for (const Type& type : kTypes) {
    if (type.theirs == theirs) {
      return std::string(type.name);
    }
  }
  return backend::StrCat("type ", theirs);
}

}  // namespace nereid::tensorflow
