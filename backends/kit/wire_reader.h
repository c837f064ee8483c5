// SPDX-License-Identifier: Apache-2.0
// Reads the fields of protobuf messages without their description: in memory, or in a file of any
// size through a small window, so that large fields cost nothing.
//
//   WireReader reader(fd, size);
//   WireRange message = reader.whole();
//   while (auto field = reader.Next(message)) {
//     if (field->number == 7) ... reader.Text(field->range), or Next on a copy of field->range
//   }
//   if (!reader.ok()) ... it is damaged
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::backend {

// A part of the file: [begin, end).
struct WireRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A field of a protobuf message.
struct WireField {
  uint32_t number = 0;
  uint64_t value = 0;  // of a number
  WireRange range;     // of a message, text or bytes; empty for numbers
  bool is_bytes = false;
};

// A reader of one file or string. Thread-compatible.
class WireReader {
 public:
  // The caller owns `fd`.
  WireReader(int fd, uint64_t size) : fd_(fd), size_(size), window_(kWindow) {}
  // `memory` outlives the reader.
  explicit WireReader(std::string_view memory)
      : size_(memory.size()), memory_(memory.data()), in_window_{0, memory.size()} {}

  WireRange whole() const { return {0, size_}; }

  // Returns the next field of the message and advances the message's begin; nothing at the end, or
  // if there is no valid field.
  std::optional<WireField> Next(WireRange& message) {
    if (message.begin >= message.end || !ok()) {
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
      field.is_bytes = true;
    }
    message.begin += skipped;
    return field;
  }

  // Returns the first kMaxText bytes of a text, which are more than any path has.
  std::string Text(const WireRange& range) {
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

  // Whether everything so far was valid. If not, either a field extended beyond the end of the
  // file, or something was no field.
  bool ok() const { return !is_cut_off_ && !is_malformed_; }
  bool is_cut_off() const { return is_cut_off_; }
  bool is_malformed() const { return is_malformed_; }

  static constexpr size_t kMaxText = 4096;

 private:
  static constexpr size_t kWindow = size_t{64} << 10;

  // Protobuf's wire types.
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

  bool Byte(uint64_t at, uint8_t& byte) {
    if (at < in_window_.begin || at >= in_window_.end) {
      if (memory_ != nullptr || fd_ < 0) {
        return false;
      }
      const ssize_t got = ::pread(fd_, window_.data(), window_.size(), static_cast<off_t>(at));
      if (got <= 0) {
        in_window_ = {};
        return false;
      }
      in_window_ = {at, at + static_cast<uint64_t>(got)};
    }
    const char* const data = memory_ != nullptr ? memory_ : window_.data();
    byte = static_cast<uint8_t>(data[at - in_window_.begin]);
    return true;
  }

  bool Varint(WireRange& message, uint64_t& value) {
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

  std::optional<WireField> Fail(bool cut_off) {
    (cut_off ? is_cut_off_ : is_malformed_) = true;
    return std::nullopt;
  }

  const int fd_ = -1;
  const uint64_t size_;
  const char* const memory_ = nullptr;
  std::vector<char> window_;
  WireRange in_window_;
  bool is_cut_off_ = false;
  bool is_malformed_ = false;
};

}  // namespace nereid::backend
