// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/wire.h"

#include <bit>

namespace nereid::caffe2 {

float WireField::AsFloat() const {
  return kind == Kind::kFixed32 ? std::bit_cast<float>(static_cast<uint32_t>(value)) : 0.0F;
}

bool WireReader::Varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      return true;
    }
  }
  is_malformed_ = true;
  return false;
}

bool WireReader::Fixed(size_t size, uint64_t& value) {
  if (rest_.size() < size) {
    is_malformed_ = true;
    return false;
  }
  value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(size);
  return true;
}

bool WireReader::Fixed32(uint64_t& value) { return Fixed(4, value); }

bool WireReader::Fixed64(uint64_t& value) { return Fixed(8, value); }

bool WireReader::Bytes(std::string_view& bytes) {
  uint64_t size = 0;
  if (!Varint(size)) {
    return false;
  }
  if (size > rest_.size()) {
    is_malformed_ = true;
    return false;
  }
  bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool WireReader::Next(WireField& field) {
  if (rest_.empty() || is_malformed_) {
    return false;
  }
  uint64_t key = 0;
  if (!Varint(key)) {
    return false;
  }
  field = {};
  if ((key >> 3) == 0 || (key >> 3) > UINT32_MAX) {
    is_malformed_ = true;
    return false;
  }
  field.number = static_cast<uint32_t>(key >> 3);
  field.kind = static_cast<WireField::Kind>(key & 7);
  switch (field.kind) {
    case WireField::Kind::kVarint:
      return Varint(field.value);
    case WireField::Kind::kFixed64:
      return Fixed64(field.value);
    case WireField::Kind::kFixed32:
      return Fixed32(field.value);
    case WireField::Kind::kBytes:
      return Bytes(field.bytes);
  }
  is_malformed_ = true;
  return false;
}

void WireWriter::Varint(uint64_t value) {
  while (value > 0x7F) {
    bytes_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void WireWriter::Number(uint32_t field, int64_t value) {
  Varint(uint64_t{field} << 3);
  Varint(static_cast<uint64_t>(value));
}

void WireWriter::Float(uint32_t field, float value) {
  Varint(uint64_t{field} << 3 | static_cast<uint64_t>(WireField::Kind::kFixed32));
  const auto bits = std::bit_cast<uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes_.push_back(static_cast<char>(bits >> shift));
  }
}

void WireWriter::Header(uint32_t field, uint64_t size) {
  Varint(uint64_t{field} << 3 | static_cast<uint64_t>(WireField::Kind::kBytes));
  Varint(size);
}

void WireWriter::Bytes(uint32_t field, std::string_view value) {
  Header(field, value.size());
  Append(value);
}

}  // namespace nereid::caffe2
