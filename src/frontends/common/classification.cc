// SPDX-License-Identifier: Apache-2.0
#include "common/classification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace nereid::common {
namespace {

// Sorting more elements than this because a client asks for it would be an attack.
constexpr size_t kMaxElements = 1'000'000;

template <typename T>
std::vector<std::string> TopClassesOf(std::span<const std::byte> data, size_t count,
                                      std::span<const std::string> labels) {
  std::vector<T> values(data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto is_number = [](T value) {
    if constexpr (std::is_floating_point_v<T>) return !std::isnan(value);
    return true;
  };
  // A total order even with NaN, which sorting algorithms require.
  const auto is_before = [&](size_t a, size_t b) {
    const bool a_is_number = is_number(values[a]);
    const bool b_is_number = is_number(values[b]);
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && values[a] != values[b]) return values[a] > values[b];
    return a < b;
  };
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    is_before);
  std::vector<std::string> classes;
  classes.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    std::string& text = classes.emplace_back(std::to_string(values[order[i]]));
    text += ':';
    text += std::to_string(order[i]);
    if (order[i] < labels.size() && !labels[order[i]].empty()) {
      text += ':';
      text += labels[order[i]];
    }
  }
  return classes;
}

}  // namespace

base::Result<std::vector<std::string>> TopClasses(std::span<const std::byte> data,
                                                  tensor::DataType type, uint64_t count,
                                                  std::span<const std::string> labels) {
  using tensor::DataType;
  const size_t element_size = tensor::ElementSize(type);
  if (element_size != 0 && data.size() / element_size > kMaxElements) {
    return base::InvalidArgumentError("classification output tensor too large");
  }
  const size_t wanted = static_cast<size_t>(count);
  switch (type) {
    case DataType::kUint8:
      return TopClassesOf<uint8_t>(data, wanted, labels);
    case DataType::kUint16:
      return TopClassesOf<uint16_t>(data, wanted, labels);
    case DataType::kUint32:
      return TopClassesOf<uint32_t>(data, wanted, labels);
    case DataType::kUint64:
      return TopClassesOf<uint64_t>(data, wanted, labels);
    case DataType::kInt8:
      return TopClassesOf<int8_t>(data, wanted, labels);
    case DataType::kInt16:
      return TopClassesOf<int16_t>(data, wanted, labels);
    case DataType::kInt32:
      return TopClassesOf<int32_t>(data, wanted, labels);
    case DataType::kInt64:
      return TopClassesOf<int64_t>(data, wanted, labels);
    case DataType::kFp32:
      return TopClassesOf<float>(data, wanted, labels);
    case DataType::kFp64:
      return TopClassesOf<double>(data, wanted, labels);
    default:
      break;
  }
  return base::InvalidArgumentError(
      "class result not available for output due to unsupported type '" +
      std::string(tensor::ProtocolName(type)) + "'");
}

}  // namespace nereid::common
