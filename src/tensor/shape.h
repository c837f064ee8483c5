// SPDX-License-Identifier: Apache-2.0
// Tensor shapes. Dimensions are int64; -1 (kWildcard) stands for "any size" in configurations and
// never occurs in the shape of data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tensor/data_type.h"

namespace nereid::tensor {

inline constexpr int64_t kWildcard = -1;

// A list of dimensions, stored in place up to rank 8 and on the heap beyond. A value type;
// thread-compatible.
class Shape {
 public:
  static constexpr size_t kInlineRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) { Assign(dims); }
  Shape(const Shape& other) { Assign(other.dims()); }
  Shape(Shape&& other) noexcept
      : heap_(std::move(other.heap_)), rank_(other.rank_), inline_(other.inline_) {
    other.rank_ = 0;
  }
  Shape& operator=(const Shape& other) {
    if (this != &other) Assign(other.dims());
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    heap_ = std::move(other.heap_);
    rank_ = other.rank_;
    inline_ = other.inline_;
    if (this != &other) other.rank_ = 0;
    return *this;
  }

  void Assign(std::span<const int64_t> dims) {
    if (dims.size() > kInlineRank || heap_) [[unlikely]]
      return AssignAny(dims);
    // Copies forwards, because `dims` may be a part of this shape, and one by one, because there
    // are seldom more than a few.
    rank_ = dims.size();
    for (size_t i = 0; i < rank_; ++i) inline_[i] = dims[i];
  }
  void PushBack(int64_t dim);
  void Clear() {
    rank_ = 0;
    heap_.reset();
  }

  size_t rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_.data(); }
  int64_t* data() { return heap_ ? heap_.get() : inline_.data(); }
  std::span<const int64_t> dims() const { return {data(), rank_}; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t& operator[](size_t i) { return data()[i]; }

  bool operator==(const Shape& other) const;

 private:
  void AssignAny(std::span<const int64_t> dims);

  std::unique_ptr<int64_t[]> heap_;  // set when the rank exceeds kInlineRank
  size_t rank_ = 0;
  std::array<int64_t, kInlineRank> inline_;
};

// Returns a text like "[1,16]", as error messages print shapes.
std::string ToString(std::span<const int64_t> dims);
inline std::string ToString(const Shape& shape) { return ToString(shape.dims()); }

// Returns the product of the dimensions (1 for a scalar), or nothing if a dimension is negative or
// the product overflows int64.
std::optional<int64_t> ElementCount(std::span<const int64_t> dims);

// Returns the bytes of a tensor of fixed-size elements, or nothing for BYTES, negative dimensions
// or overflow.
std::optional<size_t> ByteSize(DataType type, std::span<const int64_t> dims);

}  // namespace nereid::tensor
