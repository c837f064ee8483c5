// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/constant.h"

#include <cstring>

namespace nereid::caffe2 {

size_t SizeOf(Element element) {
  switch (element) {
    case Element::kUint8:
    case Element::kInt8:
    case Element::kBool:
      return 1;
    case Element::kUint16:
    case Element::kInt16:
    case Element::kHalf:
      return 2;
    case Element::kFloat:
    case Element::kInt32:
      return 4;
    case Element::kInt64:
    case Element::kDouble:
      return 8;
    case Element::kString:
    case Element::kUndefined:
      break;
  }
  return 0;
}

std::string_view NameOf(Element element) {
  constexpr std::string_view kNames[] = {"undefined", "float", "uint8",   "int8",
                                         "uint16",    "int16", "int32",   "int64",
                                         "string",    "bool",  "float16", "double"};
  const auto number = static_cast<size_t>(element);
  return number < std::size(kNames) ? kNames[number] : kNames[0];
}

std::optional<std::vector<int64_t>> Constant::Integers() const {
  const size_t size = SizeOf(type);
  if (type != Element::kInt32 && type != Element::kInt64) {
    return std::nullopt;
  }
  std::vector<int64_t> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == Element::kInt32) {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * size, size);
      values[i] = value;
    } else {
      std::memcpy(&values[i], bytes.data() + i * size, size);
    }
  }
  return values;
}

}  // namespace nereid::caffe2
