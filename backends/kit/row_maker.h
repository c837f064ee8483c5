// SPDX-License-Identifier: Apache-2.0
// Makes the inputs of a run from rows of generated data, for batch_probe.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch_verdict.h"
#include "backend_kit/row_samples.h"
#include "backend_kit/shape.h"

namespace nereid::backend::batch_probe {

// Rows that are run together; a row is identified by its kind.
using Group = std::vector<RowKind>;

// Rows of one shape and style. Immutable.
class RowMaker {
 public:
  // `inputs` outlive this. `size` is that of variable dimensions, for other inputs and for
  // pictures.
  RowMaker(std::span<const ModelTensor> inputs, std::array<int64_t, 2> size, SampleStyle style,
           uint64_t seed)
      : inputs_(inputs), size_(size), style_(style), seed_(seed) {}

  // Whether a row has at most so many bytes.
  bool Fits(uint64_t max_bytes) const {
    uint64_t bytes = 0;
    for (const ModelTensor& input : inputs_) {
      auto size = TensorByteSize(
          input.type == TRITONSERVER_TYPE_BYTES ? TRITONSERVER_TYPE_FP64 : input.type,
          ShapeOf(input, 1));
      if (!size.ok() || size.value() > max_bytes - bytes) {
        return false;
      }
      bytes += size.value();
    }
    return true;
  }

  // Returns the inputs of a run of these rows.
  Result<std::vector<HostTensor>> Make(const Group& group) const {
    std::vector<HostTensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      HostTensor tensor{.name = inputs_[i].name,
                        .type = inputs_[i].type,
                        .shape = ShapeOf(inputs_[i], static_cast<int64_t>(group.size())),
                        .bytes = {},
                        .strings = {}};
      NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(ShapeOf(inputs_[i], 1)));
      for (const RowKind kind : group) {
        AppendRow(tensor, static_cast<uint64_t>(elements), static_cast<uint64_t>(kind), kind,
                  style_, seed_ + i);
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

 private:
  std::vector<int64_t> ShapeOf(const ModelTensor& input, int64_t rows) const {
    std::vector<int64_t> shape = input.dims;
    for (size_t d = 1; d < shape.size(); ++d) {
      shape[d] = shape[d] == -1 ? size_[IsOfPicture(input, d) ? 1 : 0] : shape[d];
    }
    shape[0] = rows;
    return shape;
  }

  // A named dimension has the same size in all tensors.
  bool IsOfPicture(const ModelTensor& tensor, size_t d) const {
    const std::string_view symbol = tensor.symbol(d);
    if (symbol.empty()) {
      return tensor.dims.size() >= 4;
    }
    for (const ModelTensor& input : inputs_) {
      for (size_t other = 1; input.dims.size() >= 4 && other < input.dims.size(); ++other) {
        if (input.symbol(other) == symbol) {
          return true;
        }
      }
    }
    return false;
  }

  const std::span<const ModelTensor> inputs_;
  const std::array<int64_t, 2> size_;
  const SampleStyle style_;
  const uint64_t seed_;
};

}  // namespace nereid::backend::batch_probe
