// SPDX-License-Identifier: Apache-2.0
// Compares the outputs of two responses to one request.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "tensor/data_type.h"
#include "tensor/shape.h"

namespace nereid::engine {

// An output of a response; `buffer` keeps `data`.
struct OutputCopy {
  std::string name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;
  std::span<const std::byte> data;
  base::BufferRef buffer;
};
using ResponseCopy = std::vector<OutputCopy>;

// Returns how `b` differs from `a`, in words; empty if it does not: it has the same outputs, in any
// order, of the same types and shapes. Numbers may differ by `tolerance`, floating-point numbers
// beyond 1 by that part of the larger one; a NaN equals a NaN, and elements of BYTES and BOOL are
// equal only if all their bytes are.
std::string Difference(const ResponseCopy& a, const ResponseCopy& b, double tolerance);

}  // namespace nereid::engine
