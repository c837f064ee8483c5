// SPDX-License-Identifier: Apache-2.0
// Writes protobuf's wire format into memory whose size was computed before with the same functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nereid::grpc {

constexpr size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// The size of a bytes field whose number is below 16, so that its tag takes one byte.
constexpr size_t BytesFieldSize(size_t size) { return 1 + VarintSize(size) + size; }
// The size of a string field, which is omitted if empty.
constexpr size_t TextFieldSize(std::string_view text) {
  return text.empty() ? 0 : BytesFieldSize(text.size());
}
inline size_t PackedSize(std::span<const int64_t> values) {
  size_t size = 0;
  for (const int64_t value : values) size += VarintSize(static_cast<uint64_t>(value));
  return size;
}

// Thread-compatible. The caller provides enough room.
class WireWriter {
 public:
  explicit WireWriter(std::byte* out) : out_(reinterpret_cast<uint8_t*>(out)) {}

  std::byte* position() const { return reinterpret_cast<std::byte*>(out_); }

  void Varint(uint64_t value) {
    while (value >= 0x80) {
      *out_++ = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    *out_++ = static_cast<uint8_t>(value);
  }
  void VarintField(uint32_t field, uint64_t value) {
    *out_++ = static_cast<uint8_t>(field << 3);
    Varint(value);
  }
  void Fixed64Field(uint32_t field, uint64_t value) {
    *out_++ = static_cast<uint8_t>(field << 3 | 1);
    std::memcpy(out_, &value, sizeof(value));
    out_ += sizeof(value);
  }
  // Writes the tag and length of a bytes field or sub-message.
  void BytesHead(uint32_t field, size_t size) {
    *out_++ = static_cast<uint8_t>(field << 3 | 2);
    Varint(size);
  }
  void Bytes(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(out_, bytes.data(), bytes.size());
    out_ += bytes.size();
  }
  void BytesField(uint32_t field, std::string_view bytes) {
    BytesHead(field, bytes.size());
    Bytes(bytes);
  }
  void TextField(uint32_t field, std::string_view text) {
    if (!text.empty()) BytesField(field, text);
  }

 private:
  uint8_t* out_;
};

}  // namespace nereid::grpc
