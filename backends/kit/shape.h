// SPDX-License-Identifier: Apache-2.0
// Shapes and sizes of tensors, with arithmetic that cannot overflow.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::backend {

// Returns a text like "[1,-1,3]".
inline std::string ShapeToString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i == 0 ? "" : ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// Returns the elements of a tensor of exactly this shape; one for a scalar (no dimensions). Fails
// for a negative dimension and for a product beyond int64_t.
inline Result<int64_t> ElementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) {
      return Error::InvalidArgument(
          StrCat("shape", ShapeToString(shape), " contains an invalid dim."));
    }
    if (__builtin_mul_overflow(count, dim, &count)) {
      return Error::InvalidArgument("unexpected integer overflow while calculating element count.");
    }
  }
  return count;
}

// Returns the bytes of one element, 0 for BYTES. A table rather than a call to the server, for hot
// paths.
inline uint32_t ElementByteSize(TRITONSERVER_DataType datatype) {
  switch (datatype) {
    case TRITONSERVER_TYPE_BOOL:
    case TRITONSERVER_TYPE_UINT8:
    case TRITONSERVER_TYPE_INT8:
      return 1;
    case TRITONSERVER_TYPE_UINT16:
    case TRITONSERVER_TYPE_INT16:
    case TRITONSERVER_TYPE_FP16:
    case TRITONSERVER_TYPE_BF16:
      return 2;
    case TRITONSERVER_TYPE_UINT32:
    case TRITONSERVER_TYPE_INT32:
    case TRITONSERVER_TYPE_FP32:
      return 4;
    case TRITONSERVER_TYPE_UINT64:
    case TRITONSERVER_TYPE_INT64:
    case TRITONSERVER_TYPE_FP64:
      return 8;
    default:
      return 0;
  }
}

// Returns the bytes of a tensor of fixed-size elements. Fails like ElementCount.
inline Result<uint64_t> TensorByteSize(TRITONSERVER_DataType datatype,
                                       std::span<const int64_t> shape) {
  NEREID_KIT_ASSIGN(const int64_t count, ElementCount(shape));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), uint64_t{ElementByteSize(datatype)},
                             &bytes)) {
    return Error::InvalidArgument("unexpected integer overflow while calculating byte size.");
  }
  return bytes;
}

}  // namespace nereid::backend
