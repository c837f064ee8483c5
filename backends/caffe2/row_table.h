// SPDX-License-Identifier: Apache-2.0
// The tables whose rows SegmentReduce of kernels.h combines: of floats, or of bytes with a scale.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "caffe2_backend/custom_operator.h"

namespace nereid::caffe2 {

// The rows of a table, of whatever kind, as numbers. Valid while the operator computes.
class RowTable {
 public:
  // `bits` 0: a row has no scale at its end. Fails for a table of another type or shape.
  static backend::Result<RowTable> Open(const InputTensor& data, const InputTensor& scale_bias,
                                        int64_t bits);

  size_t rows() const { return rows_; }
  size_t width() const { return width_; }

  // Calls combine(place in the row, number) for each element. REQUIRES: row < rows().
  template <typename Combine>
  void ForEach(size_t row, Combine&& combine) const {
    if (bits_ == 0 && !scale_bias_) {
      const float* const numbers = data_.as<float>().data() + row * stride_;
      for (size_t i = 0; i < width_; ++i) {
        combine(i, numbers[i]);
      }
      return;
    }
    const uint8_t* const bytes = data_.as<uint8_t>().data() + row * stride_;
    const auto [scale, bias] = ScaleOf(row, bytes);
    const size_t bits = bits_ == 0 ? 8 : static_cast<size_t>(bits_);
    const size_t per_byte = 8 / bits;
    const unsigned mask = (1U << bits) - 1;
    for (size_t i = 0; i < width_; ++i) {
      const unsigned quantum = bytes[i / per_byte] >> (bits * (i % per_byte)) & mask;
      combine(i, scale * static_cast<float>(quantum) + bias);
    }
  }

 private:
  RowTable(const InputTensor& data, const InputTensor& scale_bias, int64_t bits)
      : data_(data), scale_bias_(scale_bias), bits_(bits) {}

  // The scale and the bias of a row, which begins at `bytes`.
  std::pair<float, float> ScaleOf(size_t row, const uint8_t* bytes) const;

  const InputTensor data_;
  const InputTensor scale_bias_;
  const int64_t bits_;
  size_t rows_ = 0;
  size_t stride_ = 0;  // of a row in the table
  size_t width_ = 0;   // numbers in a row
};

}  // namespace nereid::caffe2
