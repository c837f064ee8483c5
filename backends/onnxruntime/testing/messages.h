// SPDX-License-Identifier: Apache-2.0
// ONNX models for tests. They are protobuf messages; the few fields that tests need are written by
// hand.
#pragma once

#include <cstdint>
#include <string>

namespace nereid::onnxruntime {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

inline std::string Number(int field, uint64_t value) {
  return Varint(static_cast<uint64_t>(field) << 3) + Varint(value);
}

// A field of bytes, such as a text or a message.
inline std::string Bytes(int field, const std::string& value) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(value.size()) + value;
}

}  // namespace nereid::onnxruntime
