// SPDX-License-Identifier: Apache-2.0
#include "engine/response_compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace nereid::engine {
namespace {

using tensor::DataType;

// A number of 16 bits as it lies in memory.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

double ToDouble(Half half) {
  const double sign = (half.bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (half.bits >> 10) & 0x1F;
  const int fraction = half.bits & 0x3FF;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}
double ToDouble(Brain brain) {
  return std::bit_cast<float>(static_cast<uint32_t>(brain.bits) << 16);
}
double ToDouble(double number) { return number; }
double ToDouble(float number) { return number; }

bool IsNear(double a, double b, double tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

// Integers of 64 bits do not fit into doubles, but their difference does well enough.
template <typename T>
bool IsNearInteger(T a, T b, double tolerance) {
  if (a == b) return true;
  using U = std::make_unsigned_t<T>;
  const U distance = a > b ? static_cast<U>(static_cast<U>(a) - static_cast<U>(b))
                           : static_cast<U>(static_cast<U>(b) - static_cast<U>(a));
  return static_cast<double>(distance) <= tolerance;
}

template <typename T>
bool AreNear(const OutputCopy& a, const OutputCopy& b, double tolerance) {
  for (size_t at = 0; at + sizeof(T) <= a.data.size(); at += sizeof(T)) {
    T x;
    T y;
    std::memcpy(&x, a.data.data() + at, sizeof(T));
    std::memcpy(&y, b.data.data() + at, sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      if (!IsNearInteger(x, y, tolerance)) return false;
    } else {
      if (!IsNear(ToDouble(x), ToDouble(y), tolerance)) return false;
    }
  }
  return true;
}

// REQUIRES: both have the same type and size.
bool IsSameData(const OutputCopy& a, const OutputCopy& b, double tolerance) {
  if (std::ranges::equal(a.data, b.data)) return true;
  switch (a.type) {
    case DataType::kUint8:
      return AreNear<uint8_t>(a, b, tolerance);
    case DataType::kUint16:
      return AreNear<uint16_t>(a, b, tolerance);
    case DataType::kUint32:
      return AreNear<uint32_t>(a, b, tolerance);
    case DataType::kUint64:
      return AreNear<uint64_t>(a, b, tolerance);
    case DataType::kInt8:
      return AreNear<int8_t>(a, b, tolerance);
    case DataType::kInt16:
      return AreNear<int16_t>(a, b, tolerance);
    case DataType::kInt32:
      return AreNear<int32_t>(a, b, tolerance);
    case DataType::kInt64:
      return AreNear<int64_t>(a, b, tolerance);
    case DataType::kFp16:
      return AreNear<Half>(a, b, tolerance);
    case DataType::kBf16:
      return AreNear<Brain>(a, b, tolerance);
    case DataType::kFp32:
      return AreNear<float>(a, b, tolerance);
    case DataType::kFp64:
      return AreNear<double>(a, b, tolerance);
    case DataType::kBool:
    case DataType::kBytes:
    case DataType::kInvalid:
      break;
  }
  return false;
}

}  // namespace

std::string Difference(const ResponseCopy& a, const ResponseCopy& b, double tolerance) {
  if (a.size() != b.size()) return fmt::format("{} outputs and {}", a.size(), b.size());
  for (const OutputCopy& output : a) {
    const auto other = std::ranges::find(b, output.name, &OutputCopy::name);
    if (other == b.end()) return fmt::format("only one has output '{}'", output.name);
    if (output.type != other->type) {
      return fmt::format("output '{}' is {} and {}", output.name, tensor::ProtocolName(output.type),
                         tensor::ProtocolName(other->type));
    }
    if (!(output.shape == other->shape)) {
      return fmt::format("output '{}' has the shapes {} and {}", output.name,
                         tensor::ToString(output.shape), tensor::ToString(other->shape));
    }
    if (output.data.size() != other->data.size() || !IsSameData(output, *other, tolerance)) {
      return fmt::format("the data of output '{}' differ", output.name);
    }
  }
  return {};
}

}  // namespace nereid::engine
