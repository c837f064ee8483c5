// SPDX-License-Identifier: Apache-2.0
#include "cli/json_elements.h"

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "cli/elements.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

using tensor::DataType;

template <typename T>
bool Append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
  return true;
}

template <typename T>
bool AppendInteger(std::string& out, const rapidjson::Value& value) {
  if constexpr (std::is_signed_v<T>) {
    if (!value.IsInt64()) return false;
    const int64_t number = value.GetInt64();
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      return false;
    }
    return Append(out, static_cast<T>(number));
  } else {
    if (!value.IsUint64() || value.GetUint64() > std::numeric_limits<T>::max()) return false;
    return Append(out, static_cast<T>(value.GetUint64()));
  }
}

// FloatToHalf rounds only numbers from 0 to 1; others are cut, which is exact for small integers.
uint16_t HalfOf(float value) {
  if (value >= 0 && value <= 1) return FloatToHalf(value);
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFFU);
  if (magnitude <= 1) return sign | FloatToHalf(magnitude);
  constexpr float kLargest = 65504;
  if (!(magnitude <= kLargest)) return sign | (magnitude != magnitude ? 0x7E00U : 0x7C00U);
  return sign | static_cast<uint16_t>(((std::bit_cast<uint32_t>(magnitude) - 0x38000000U) >> 13));
}

bool AppendElement(std::string& out, DataType type, const rapidjson::Value& value) {
  switch (type) {
    case DataType::kBool:
      if (value.IsBool()) return Append(out, static_cast<uint8_t>(value.GetBool()));
      return value.IsUint() && value.GetUint() <= 1 && AppendInteger<uint8_t>(out, value);
    case DataType::kUint8:
      return AppendInteger<uint8_t>(out, value);
    case DataType::kUint16:
      return AppendInteger<uint16_t>(out, value);
    case DataType::kUint32:
      return AppendInteger<uint32_t>(out, value);
    case DataType::kUint64:
      return AppendInteger<uint64_t>(out, value);
    case DataType::kInt8:
      return AppendInteger<int8_t>(out, value);
    case DataType::kInt16:
      return AppendInteger<int16_t>(out, value);
    case DataType::kInt32:
      return AppendInteger<int32_t>(out, value);
    case DataType::kInt64:
      return AppendInteger<int64_t>(out, value);
    case DataType::kFp16:
      return value.IsNumber() && Append(out, HalfOf(static_cast<float>(value.GetDouble())));
    case DataType::kBf16:
      return value.IsNumber() &&
             Append(out, static_cast<uint16_t>(
                             std::bit_cast<uint32_t>(static_cast<float>(value.GetDouble())) >> 16));
    case DataType::kFp32:
      return value.IsNumber() && Append(out, static_cast<float>(value.GetDouble()));
    case DataType::kFp64:
      return value.IsNumber() && Append(out, value.GetDouble());
    case DataType::kBytes:
      if (!value.IsString()) return false;
      AppendBytes(out, {value.GetString(), value.GetStringLength()});
      return true;
    case DataType::kInvalid:
      break;
  }
  return false;
}

}  // namespace

base::Result<std::string> BytesOfJson(DataType type, const rapidjson::Value& value) {
  std::string out;
  // A stack rather than recursion, because nesting from outside has no limit.
  std::vector<std::pair<const rapidjson::Value*, rapidjson::SizeType>> open;
  const rapidjson::Value* at = &value;
  while (true) {
    if (at->IsArray()) {
      open.emplace_back(at, 0);
    } else if (!AppendElement(out, type, *at)) {
      return base::InvalidArgumentError(
          fmt::format("{} is no {}", WriteJson(*at), tensor::ProtocolName(type)));
    }
    while (!open.empty() && open.back().second == open.back().first->Size()) open.pop_back();
    if (open.empty()) return out;
    at = &(*open.back().first)[open.back().second++];
  }
}

}  // namespace nereid::cli
