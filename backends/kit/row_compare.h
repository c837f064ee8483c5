// SPDX-License-Identifier: Apache-2.0
// Compares a row of an output that was computed alone with the same row computed with others.
// Kernels add in a different order for different numbers of rows, so floats are compared with a
// tolerance, everything else exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "backend_kit/row_samples.h"

namespace nereid::backend {

// The permitted difference of two values: absolute + of_value * the larger magnitude of the two +
// of_row * the largest magnitude in the row, because cancellation may leave errors of that scale.
struct Tolerance {
  double absolute = 0;
  double of_value = 0;
  double of_row = 0;
};

// FP64 has the tolerance of FP32, because a model may compute in FP32 internally.
inline Tolerance ToleranceOf(TRITONSERVER_DataType type) {
  switch (type) {
    case TRITONSERVER_TYPE_FP16:
      return {.absolute = 1e-3, .of_value = 2e-2, .of_row = 5e-3};
    case TRITONSERVER_TYPE_BF16:
      return {.absolute = 1e-2, .of_value = 5e-2, .of_row = 2e-2};
    case TRITONSERVER_TYPE_FP32:
    case TRITONSERVER_TYPE_FP64:
      return {.absolute = 1e-6, .of_value = 1e-3, .of_row = 1e-4};
    default:
      return {};
  }
}

// The first position at which two rows differ, and both values as text.
struct RowDifference {
  uint64_t element = 0;
  std::string left;
  std::string right;
};

namespace row_compare {

template <typename T>
T Load(const char* data, uint64_t element) {
  T value;
  std::memcpy(&value, data + element * sizeof(T), sizeof(T));
  return value;
}

inline double LoadFloat(TRITONSERVER_DataType type, const char* data, uint64_t element) {
  switch (type) {
    case TRITONSERVER_TYPE_FP16:
      return FromHalf(Load<uint16_t>(data, element));
    case TRITONSERVER_TYPE_BF16:
      return FromBfloat16(Load<uint16_t>(data, element));
    case TRITONSERVER_TYPE_FP32:
      return Load<float>(data, element);
    default:
      return Load<double>(data, element);
  }
}

inline std::string IntegerText(uint32_t size, const char* data, uint64_t element) {
  int64_t value = 0;  // little-endian, like all tensor data
  std::memcpy(&value, data + element * size, size);
  const unsigned shift = 64 - 8 * size;
  return std::to_string(static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift);
}

// Whether two numbers are equal within the tolerance. An infinity equals only the same infinity,
// and a NaN any NaN.
inline bool IsClose(double a, double b, const Tolerance& tolerance, double largest) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) && std::isnan(b);
  }
  if (a == b) {
    return true;
  }
  if (std::isinf(a) || std::isinf(b)) {
    return false;
  }
  return std::abs(a - b) <= tolerance.absolute + tolerance.of_row * largest +
                                tolerance.of_value * std::max(std::abs(a), std::abs(b));
}

inline std::optional<RowDifference> CompareFloats(TRITONSERVER_DataType type, const char* left,
                                                  const char* right, uint64_t elements) {
  const Tolerance tolerance = ToleranceOf(type);
  double largest = 0;
  for (uint64_t e = 0; e < elements; ++e) {
    const double magnitude = std::abs(LoadFloat(type, left, e));
    largest = std::isfinite(magnitude) ? std::max(largest, magnitude) : largest;
  }
  for (uint64_t e = 0; e < elements; ++e) {
    const double a = LoadFloat(type, left, e);
    const double b = LoadFloat(type, right, e);
    if (!IsClose(a, b, tolerance, largest)) {
      return RowDifference{e, std::to_string(a), std::to_string(b)};
    }
  }
  return std::nullopt;
}

}  // namespace row_compare

// Compares row `left_row` of `left` with row `right_row` of `right`, both with rows of `elements`
// elements of one type. Returns nothing if they are equal.
inline std::optional<RowDifference> CompareRows(const HostTensor& left, uint64_t left_row,
                                                const HostTensor& right, uint64_t right_row,
                                                uint64_t elements) {
  if (left.is_string()) {
    for (uint64_t e = 0; e < elements; ++e) {
      const std::string& a = left.strings[left_row * elements + e];
      const std::string& b = right.strings[right_row * elements + e];
      if (a != b) {
        return RowDifference{e, a, b};
      }
    }
    return std::nullopt;
  }
  const uint32_t size = ElementByteSize(left.type);
  const char* const a = left.bytes.data() + left_row * elements * size;
  const char* const b = right.bytes.data() + right_row * elements * size;
  const bool is_float = ToleranceOf(left.type).absolute > 0;
  if (elements == 0 || std::memcmp(a, b, elements * size) == 0) {
    return std::nullopt;
  }
  if (is_float) {
    return row_compare::CompareFloats(left.type, a, b, elements);
  }
  for (uint64_t e = 0; e < elements; ++e) {
    if (std::memcmp(a + e * size, b + e * size, size) != 0) {
      return RowDifference{e, row_compare::IntegerText(size, a, e),
                           row_compare::IntegerText(size, b, e)};
    }
  }
  return std::nullopt;
}

}  // namespace nereid::backend
