// SPDX-License-Identifier: Apache-2.0
#include "cli/json_elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
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
bool AppendValue(std::string& out, T value) {
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
    return AppendValue(out, static_cast<T>(number));
  } else {
    if (!value.IsUint64() || value.GetUint64() > std::numeric_limits<T>::max()) return false;
    return AppendValue(out, static_cast<T>(value.GetUint64()));
  }
}

// Appends the nearest number of FP16, BF16 or FP32; of two that are as near, the one whose last bit
// is 0. Returns false if it would be infinite, and `number` is not.
bool AppendReal(std::string& out, DataType type, double number) {
  const bool is_half = type == DataType::kFp16;
  const int digits = is_half ? 11 : type == DataType::kBf16 ? 8 : 24;
  const int min_exponent = is_half ? -13 : -125;
  const double largest = is_half ? 65504 : type == DataType::kBf16 ? 0x1.FEp127 : 0x1.FFFFFEp127;
  double rounded = number;
  if (std::isfinite(number)) {
    int exponent = 0;
    std::frexp(number, &exponent);
    // The distance between numbers of the type, which below the smallest normal number stays.
    const int step = std::max(exponent, min_exponent) - digits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(number, -step)), step);
    if (std::abs(rounded) > largest) return false;
  }
  const auto value = static_cast<float>(rounded);
  const auto bits = std::bit_cast<uint32_t>(value);
  if (type == DataType::kFp32) return AppendValue(out, value);
  if (type == DataType::kBf16) return AppendValue(out, static_cast<uint16_t>(bits >> 16));
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  if (std::isnan(value)) return AppendValue(out, static_cast<uint16_t>(sign | 0x7E00U));
  if (std::isinf(value)) return AppendValue(out, static_cast<uint16_t>(sign | 0x7C00U));
  // Below the smallest normal number, the bits count the steps.
  if (std::abs(value) < 0x1p-14F) {
    return AppendValue(
        out, static_cast<uint16_t>(sign | static_cast<unsigned>(std::abs(value) * 0x1p24F)));
  }
  // FP32 has 13 bits more behind the point, and an exponent that is larger by 112.
  return AppendValue(out,
                     static_cast<uint16_t>(sign | (((bits & 0x7FFFFFFFU) - (112U << 23)) >> 13)));
}

bool AppendElement(std::string& out, DataType type, const rapidjson::Value& value) {
  switch (type) {
    case DataType::kBool:
      if (value.IsBool()) return AppendValue(out, static_cast<uint8_t>(value.GetBool()));
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
    case DataType::kBf16:
    case DataType::kFp32:
      return value.IsNumber() && AppendReal(out, type, value.GetDouble());
    case DataType::kFp64:
      return value.IsNumber() && AppendValue(out, value.GetDouble());
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
  // A stack rather than recursion, because how deep it goes is not ours to say.
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
