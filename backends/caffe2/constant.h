// SPDX-License-Identifier: Apache-2.0
// A tensor in the file of an ONNX graph, and the types that its elements can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::caffe2 {

// ONNX's numbers of element types.
enum class Element : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kHalf = 10,
  kDouble = 11,
};

// Returns the size of an element in bytes; 0 for texts and for what is not in the list.
size_t SizeOf(Element element);
// Returns Caffe2's name: "float", "int32", ...
std::string_view NameOf(Element element);

using Dims = std::vector<int64_t>;  // -1: variable

// A tensor that the file contains. Immutable.
struct Constant {
  Element type = Element::kFloat;
  Dims dims;
  std::string bytes;               // the elements, unless they are texts
  std::vector<std::string> texts;  // the elements if they are texts

  // The elements as integers, for constants of type int32 or int64; nothing for others.
  std::optional<std::vector<int64_t>> Integers() const;
};

}  // namespace nereid::caffe2
