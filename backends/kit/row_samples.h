// SPDX-License-Identifier: Apache-2.0
// Rows of generated data to run a model on. The same call produces the same bytes on every machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backend_kit/shape.h"

namespace nereid::backend {

// A tensor in our own memory.
struct HostTensor {
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<char> bytes;           // elements of fixed size
  std::vector<std::string> strings;  // elements of TRITONSERVER_TYPE_BYTES

  bool is_string() const { return type == TRITONSERVER_TYPE_BYTES; }
  size_t byte_size() const {
    size_t size = bytes.size();
    for (const std::string& text : strings) {
      size += text.size();
    }
    return size;
  }
};

// Converts to the bits of a 16-bit float. Rounds towards zero, which is enough for generated data;
// values that are too large become the largest ones.
inline uint16_t ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const int exponent = static_cast<int>(bits >> 23 & 0xFFU) - 127 + 15;
  if (exponent <= 0) {
    return sign;
  }
  const uint32_t magnitude = static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 0x3FFU);
  return static_cast<uint16_t>(sign | (exponent >= 31 ? 0x7BFFU : magnitude));
}
inline float FromHalf(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = half >> 10 & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float small = static_cast<float>(mantissa) / (1 << 24);
    return sign != 0 ? -small : small;
  }
  const uint32_t wide = exponent == 31 ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}
inline uint16_t ToBfloat16(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}
inline float FromBfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// How a row differs from others, so that any influence of one row on another shows in some of them.
// A huge row shows even small influences, a row of zeros shows special treatment of empty rows.
enum class RowKind { kPlain, kWide, kNarrow, kHuge, kZero };

// The values that a model is likely to accept. Integers are often indices, which fail if out of
// range; a zero may be a divisor, so styles with zeros are tried last.
struct SampleStyle {
  int64_t min = 1;
  int64_t max = 9;
  bool is_unit = false;  // floats in [0, 1) instead of around zero
};

// A stream of numbers for one row of one tensor (splitmix64).
class SampleStream {
 public:
  explicit SampleStream(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 0x632BE59BD9B4E019U) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) / static_cast<double>(1ULL << 53); }
  // Returns a number around zero with a variance of about one.
  double Around() { return (Unit() + Unit() + Unit() + Unit() - 2) * 1.75; }

 private:
  uint64_t state_;
};

namespace row_samples {

inline double Float(SampleStream& stream, const SampleStyle& style, RowKind kind, double huge) {
  const double plain = style.is_unit ? stream.Unit() : stream.Around();
  switch (kind) {
    case RowKind::kPlain:
      return plain;
    case RowKind::kWide:
      return style.is_unit ? 0.5 + plain / 2 : 3 * plain + 0.5;
    case RowKind::kNarrow:
      return style.is_unit ? plain / 2 : 0.3 * plain - 0.2;
    case RowKind::kHuge:
      return huge * plain;
    case RowKind::kZero:
      break;
  }
  return 0;
}

// Returns element e of row r. The first element differs between rows.
inline int64_t Integer(SampleStream& stream, const SampleStyle& style, RowKind kind, uint64_t row,
                       uint64_t e) {
  const uint64_t count = static_cast<uint64_t>(style.max - style.min) + 1;
  const uint64_t drawn = stream.Next();
  if (kind == RowKind::kZero) {
    return style.min;
  }
  return style.min + static_cast<int64_t>((e == 0 ? row + 1 : drawn) % count);
}

template <typename T>
void Append(std::vector<char>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Pictures use the whole range of bytes; other integers have the same values for all sizes.
inline void AppendInteger(HostTensor& to, int64_t value, bool is_picture, uint64_t drawn) {
  switch (to.type) {
    case TRITONSERVER_TYPE_BOOL:
      return Append(to.bytes, static_cast<uint8_t>(value & 1));
    case TRITONSERVER_TYPE_UINT8:
      return Append(to.bytes,
                    static_cast<uint8_t>(is_picture ? drawn : static_cast<uint64_t>(value)));
    case TRITONSERVER_TYPE_INT8:
      return Append(to.bytes, static_cast<int8_t>(value));
    case TRITONSERVER_TYPE_UINT16:
    case TRITONSERVER_TYPE_INT16:
      return Append(to.bytes, static_cast<int16_t>(value));
    case TRITONSERVER_TYPE_UINT32:
    case TRITONSERVER_TYPE_INT32:
      return Append(to.bytes, static_cast<int32_t>(value));
    default:
      return Append(to.bytes, value);
  }
}

}  // namespace row_samples

// Adds `elements` elements of row `row` to `to`. `seed` distinguishes tensors. REQUIRES: `to.type`
// is set.
inline void AppendRow(HostTensor& to, uint64_t elements, uint64_t row, RowKind kind,
                      const SampleStyle& style, uint64_t seed) {
  SampleStream stream(seed * 1000003 + row);
  const bool is_picture = to.shape.size() >= 3 && style.max > 1 && kind != RowKind::kZero;
  for (uint64_t e = 0; e < elements; ++e) {
    switch (to.type) {
      case TRITONSERVER_TYPE_FP16:
        row_samples::Append(
            to.bytes, ToHalf(static_cast<float>(row_samples::Float(stream, style, kind, 100))));
        break;
      case TRITONSERVER_TYPE_BF16:
        row_samples::Append(
            to.bytes, ToBfloat16(static_cast<float>(row_samples::Float(stream, style, kind, 1e4))));
        break;
      case TRITONSERVER_TYPE_FP32:
        row_samples::Append(to.bytes,
                            static_cast<float>(row_samples::Float(stream, style, kind, 1e4)));
        break;
      case TRITONSERVER_TYPE_FP64:
        row_samples::Append(to.bytes, row_samples::Float(stream, style, kind, 1e4));
        break;
      case TRITONSERVER_TYPE_BYTES:
        // A number as text is valid for models that parse numbers and for those that read words.
        to.strings.push_back(std::to_string(row_samples::Integer(stream, style, kind, row, e)));
        break;
      default: {
        const int64_t value = row_samples::Integer(stream, style, kind, row, e);
        row_samples::AppendInteger(to, value, is_picture, is_picture ? stream.Next() : 0);
        break;
      }
    }
  }
}

}  // namespace nereid::backend
