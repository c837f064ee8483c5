// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/wire_reader.h"

#include <unistd.h>

#include <algorithm>

namespace nereid::onnxruntime {

namespace {

// Protobuf's wire types.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

}  // namespace

bool WireReader::Byte(uint64_t at, uint8_t& byte) {
  if (at < in_window_.begin || at >= in_window_.end) {
    const ssize_t got = ::pread(fd_, window_.data(), window_.size(), static_cast<off_t>(at));
    if (got <= 0) {
      in_window_ = {};
      return false;
    }
    in_window_ = {at, at + static_cast<uint64_t>(got)};
  }
  byte = static_cast<uint8_t>(window_[at - in_window_.begin]);
  return true;
}

bool WireReader::Varint(WireRange& message, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (message.begin >= message.end || !Byte(message.begin, byte)) {
      return false;
    }
    ++message.begin;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      return true;
    }
  }
  return false;
}

std::optional<WireField> WireReader::Fail(bool cut_off) {
  (cut_off ? is_cut_off_ : is_malformed_) = true;
  return std::nullopt;
}

std::optional<WireField> WireReader::Next(WireRange& message) {
  if (message.begin >= message.end || is_cut_off_ || is_malformed_) {
    return std::nullopt;
  }
  uint64_t key = 0;
  if (!Varint(message, key) || (key >> 3) == 0 || (key >> 3) > UINT32_MAX) {
    return Fail(message.begin >= size_);
  }
  WireField field{.number = static_cast<uint32_t>(key >> 3), .value = 0, .range = {}};
  uint64_t skipped = 0;
  switch (key & 7) {
    case kVarint:
      return Varint(message, field.value) ? std::optional(field) : Fail(message.begin >= size_);
    case kFixed64:
      skipped = 8;
      break;
    case kFixed32:
      skipped = 4;
      break;
    case kLengthDelimited:
      if (!Varint(message, skipped)) {
        return Fail(message.begin >= size_);
      }
      break;
    default:
      return Fail(false);
  }
  if (skipped > message.end - message.begin) {
    return Fail(message.end == size_);
  }
  if ((key & 7) == kLengthDelimited) {
    field.range = {message.begin, message.begin + skipped};
  }
  message.begin += skipped;
  return field;
}

std::string WireReader::Text(const WireRange& range) {
  std::string text;
  const uint64_t size = std::min<uint64_t>(range.end - range.begin, kMaxText);
  for (uint64_t at = range.begin; at < range.begin + size; ++at) {
    uint8_t byte = 0;
    if (!Byte(at, byte)) {
      break;
    }
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

}  // namespace nereid::onnxruntime
