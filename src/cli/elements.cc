// SPDX-License-Identifier: Apache-2.0
#include "cli/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/json_text.h"
#include "cli/printable.h"

namespace nereid::cli {
namespace {

using tensor::DataType;

constexpr uint64_t kMaxGenerated = uint64_t{1} << 30;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void AppendRaw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// The shortest digits that read back as the same number of this type.
template <typename T>
void AppendReal(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    const std::string digits = fmt::format("{}", value);
    out += digits;
    if (digits.find_first_of(".e") == std::string::npos) out += ".0";
  }
}

void AppendElement(std::string& out, DataType type, const char* at) {
  switch (type) {
    case DataType::kBool:
      return base::AppendJsonBool(out, *at != 0);
    case DataType::kUint8:
      return base::AppendJsonInteger(out, Load<uint8_t>(at));
    case DataType::kUint16:
      return base::AppendJsonInteger(out, Load<uint16_t>(at));
    case DataType::kUint32:
      return base::AppendJsonInteger(out, Load<uint32_t>(at));
    case DataType::kUint64:
      return base::AppendJsonInteger(out, Load<uint64_t>(at));
    case DataType::kInt8:
      return base::AppendJsonInteger(out, Load<int8_t>(at));
    case DataType::kInt16:
      return base::AppendJsonInteger(out, Load<int16_t>(at));
    case DataType::kInt32:
      return base::AppendJsonInteger(out, Load<int32_t>(at));
    case DataType::kInt64:
      return base::AppendJsonInteger(out, Load<int64_t>(at));
    case DataType::kFp16:
      return AppendReal(out, HalfToFloat(Load<uint16_t>(at)));
    case DataType::kBf16:
      return AppendReal(out, Bfloat16ToFloat(Load<uint16_t>(at)));
    case DataType::kFp32:
      return AppendReal(out, Load<float>(at));
    case DataType::kFp64:
      return AppendReal(out, Load<double>(at));
    case DataType::kBytes:
    case DataType::kInvalid:
      break;
  }
}

void AppendRandom(std::string& out, DataType type, std::mt19937_64& random) {
  constexpr uint64_t kIntegers = 100;
  const uint64_t bits = random();
  // The upper bits are the numerator of a fraction that a float can hold.
  const float fraction = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24);
  switch (type) {
    case DataType::kBool:
      return AppendRaw(out, static_cast<uint8_t>(bits & 1));
    case DataType::kFp16:
      return AppendRaw(out, FloatToHalf(fraction));
    case DataType::kBf16:
      return AppendRaw(out, static_cast<uint16_t>(std::bit_cast<uint32_t>(fraction) >> 16));
    case DataType::kFp32:
      return AppendRaw(out, fraction);
    case DataType::kFp64:
      return AppendRaw(out, static_cast<double>(fraction));
    case DataType::kBytes:
      return AppendBytes(out, fmt::format("word{}", bits % kIntegers));
    default: {
      // Little-endian: the low bytes come first, whatever the size.
      const uint64_t integer = bits % kIntegers;
      out.append(reinterpret_cast<const char*>(&integer), tensor::ElementSize(type));
    }
  }
}

}  // namespace

base::Result<std::string> GenerateElements(DataType type, int64_t count, Filling filling,
                                           uint64_t seed) {
  // A generated element of BYTES takes up to ten bytes.
  const uint64_t size = type == DataType::kBytes ? 10 : tensor::ElementSize(type);
  if (size == 0 || count < 0 || static_cast<uint64_t>(count) > kMaxGenerated / size) {
    return base::InvalidArgumentError("more than 1 GiB of data would be generated");
  }
  std::string out;
  if (filling == Filling::kZeros && type != DataType::kBytes) {
    out.assign(size * static_cast<uint64_t>(count), '\0');
    return out;
  }
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < count; ++i) {
    if (filling == Filling::kRandom) {
      AppendRandom(out, type, random);
    } else {
      AppendBytes(out, "");
    }
  }
  return out;
}

base::Result<std::string> ElementsText(DataType type, std::string_view bytes, size_t limit) {
  const auto wrong_size = [&] {
    return base::Status(base::StatusCode::kUnknown,
                        fmt::format("{} bytes do not make whole elements of type {}", bytes.size(),
                                    tensor::ProtocolName(type)));
  };
  const size_t size = tensor::ElementSize(type);
  std::vector<std::string_view> elements;
  size_t count = 0;
  if (type == DataType::kBytes) {
    auto split = SplitBytes(bytes);
    if (!split) return wrong_size();
    elements = std::move(*split);
    count = elements.size();
  } else {
    if (size == 0 || bytes.size() % size != 0) return wrong_size();
    count = bytes.size() / size;
  }
  std::string out = "[";
  for (size_t i = 0; i < std::min(count, limit); ++i) {
    if (i > 0) out += ", ";
    if (type == DataType::kBytes) {
      base::AppendJsonString(out, ValidUtf8(elements[i]));
    } else {
      AppendElement(out, type, bytes.data() + i * size);
    }
  }
  if (count > limit) out += fmt::format(", ... {} more", count - limit);
  return out + "]";
}

std::optional<std::vector<std::string_view>> SplitBytes(std::string_view bytes) {
  std::vector<std::string_view> elements;
  while (!bytes.empty()) {
    if (bytes.size() < sizeof(uint32_t)) return std::nullopt;
    const auto length = Load<uint32_t>(bytes.data());
    bytes.remove_prefix(sizeof length);
    if (length > bytes.size()) return std::nullopt;
    elements.push_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return elements;
}

void AppendBytes(std::string& out, std::string_view element) {
  AppendRaw(out, static_cast<uint32_t>(element.size()));
  out += element;
}

float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int fraction = half & 0x3FF;
  float value = 0;
  if (exponent == 0x1F) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

uint16_t FloatToHalf(float value) {
  if (value <= 0) return 0;
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);  // from 0.5 to 1
  // The smallest normal number is 2^-14; below, the step stays that of its exponent.
  const int scale = std::max(exponent, -13);
  const auto steps = std::lround(std::ldexp(mantissa, exponent - scale + 11));
  return static_cast<uint16_t>(((scale + 13) << 10) + steps);
}

float Bfloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

}  // namespace nereid::cli
