// SPDX-License-Identifier: Apache-2.0
// The format follows Triton's server/src/tracer.cc, TraceTensorActivity.
#include "observe/tensor_text.h"

#include <cstring>
#include <iterator>
#include <type_traits>

#include <fmt/format.h>

namespace nereid::observe {
namespace {

template <typename T>
std::string Values(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if (at > 0) text += ',';
    if constexpr (std::is_floating_point_v<T>) {
      fmt::format_to(std::back_inserter(text), "{:g}", value);
    } else {
      fmt::format_to(std::back_inserter(text), "{}", +value);
    }
  }
  return text;
}

// Prints each element in quotes. Stops at a length that points past the end.
std::string Texts(std::string_view bytes) {
  std::string text;
  while (bytes.size() >= sizeof(uint32_t)) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    bytes.remove_prefix(sizeof(length));
    if (length > bytes.size()) break;
    if (!text.empty()) text += ',';
    text += '"';
    text += bytes.substr(0, length);
    text += '"';
    bytes.remove_prefix(length);
  }
  return text;
}

}  // namespace

std::string DataText(tensor::DataType type, std::string_view bytes) {
  using tensor::DataType;
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8:
      return Values<uint8_t>(bytes);
    case DataType::kUint16:
      return Values<uint16_t>(bytes);
    case DataType::kUint32:
      return Values<uint32_t>(bytes);
    case DataType::kUint64:
      return Values<uint64_t>(bytes);
    case DataType::kInt8:
      return Values<int8_t>(bytes);
    case DataType::kInt16:
      return Values<int16_t>(bytes);
    case DataType::kInt32:
      return Values<int32_t>(bytes);
    case DataType::kInt64:
      return Values<int64_t>(bytes);
    case DataType::kFp32:
      return Values<float>(bytes);
    case DataType::kFp64:
      return Values<double>(bytes);
    case DataType::kBytes:
      return Texts(bytes);
    default:
      return {};  // 16-bit floats have no text
  }
}

}  // namespace nereid::observe
