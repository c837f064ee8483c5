// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/row_table.h"

#include <bit>
#include <cstring>

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;

namespace {

// The number that 16 bits are (IEEE 754, half).
float FromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

}  // namespace

Result<RowTable> RowTable::Open(const InputTensor& data, const InputTensor& scale_bias,
                                int64_t bits) {
  RowTable table(data, scale_bias, bits);
  if (data.dims.empty()) {
    return Error::InvalidArgument("a table needs at least one dimension");
  }
  table.rows_ = static_cast<size_t>(data.dims.front());
  table.stride_ = table.rows_ == 0 ? 0 : data.size / table.rows_;
  table.width_ = table.stride_;
  const bool is_bytes = data.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
  if (bits == 0 && !scale_bias) {
    return data.type == kFloats ? Result<RowTable>(table)
                                : Error::InvalidArgument("the table is not of type FP32");
  }
  if (!is_bytes || (scale_bias && scale_bias.size != 2 * table.rows_)) {
    return Error::InvalidArgument("the table is not of type UINT8, or not all rows have a scale");
  }
  if (bits != 0) {
    const size_t tail = bits == 8 ? 2 * sizeof(float) : 2 * sizeof(uint16_t);
    if (data.dims.size() != 2 || data.dims.back() < static_cast<int64_t>(tail)) {
      return Error::InvalidArgument("the rows of the table are too short for scale and bias");
    }
    table.stride_ = static_cast<size_t>(data.dims.back());
    table.width_ = (table.stride_ - tail) * (8 / static_cast<size_t>(bits));
  }
  return table;
}

std::pair<float, float> RowTable::ScaleOf(size_t row, const uint8_t* bytes) const {
  if (scale_bias_) {
    const std::span<const float> all = scale_bias_.as<float>();
    return {all[2 * row], all[2 * row + 1]};
  }
  if (bits_ == 8) {
    float both[2];
    std::memcpy(both, bytes + stride_ - sizeof(both), sizeof(both));
    return {both[0], both[1]};
  }
  uint16_t both[2];
  std::memcpy(both, bytes + stride_ - sizeof(both), sizeof(both));
  return {FromHalf(both[0]), FromHalf(both[1])};
}

}  // namespace nereid::caffe2
