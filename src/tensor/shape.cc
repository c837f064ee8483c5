// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <algorithm>

#include "base/arithmetic.h"

namespace nereid::tensor {

void Shape::AssignAny(std::span<const int64_t> dims) {
  if (dims.size() > kInlineRank) {
    auto copy = std::make_unique<int64_t[]>(dims.size());
    std::copy(dims.begin(), dims.end(), copy.get());
    heap_ = std::move(copy);
  } else {
    // Like memmove: `dims` may be a part of this shape.
    std::array<int64_t, kInlineRank> copy;
    std::copy(dims.begin(), dims.end(), copy.begin());
    std::copy_n(copy.begin(), dims.size(), inline_.begin());
    heap_.reset();
  }
  rank_ = dims.size();
}

void Shape::PushBack(int64_t dim) {
  if (!heap_ && rank_ < kInlineRank) {
    inline_[rank_++] = dim;
    return;
  }
  // Ranks above eight are rare enough to grow one at a time.
  auto copy = std::make_unique<int64_t[]>(rank_ + 1);
  std::copy_n(data(), rank_, copy.get());
  copy[rank_] = dim;
  heap_ = std::move(copy);
  ++rank_;
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

std::string ToString(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

std::optional<int64_t> ElementCount(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool has_zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      has_zero = true;
      continue;  // the other dimensions must still not overflow
    }
    const auto product = base::CheckedMul(count, dim);
    if (!product) return std::nullopt;
    count = *product;
  }
  return has_zero ? 0 : count;
}

std::optional<size_t> ByteSize(DataType type, std::span<const int64_t> dims) {
  const size_t element = ElementSize(type);
  if (element == 0) return std::nullopt;
  const auto count = ElementCount(dims);
  if (!count) return std::nullopt;
  return base::CheckedMul(static_cast<size_t>(*count), element);
}

}  // namespace nereid::tensor
