// SPDX-License-Identifier: Apache-2.0
// Reads the fields of protobuf messages in a file of any size through a small window, so that large
// fields cost nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nereid::onnxruntime {

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
};

// A reader of one file. Thread-compatible. The caller owns `fd`.
class WireReader {
 public:
  WireReader(int fd, uint64_t size) : fd_(fd), size_(size), window_(kWindow) {}

  WireRange whole() const { return {0, size_}; }
  // Returns the next field of the message and advances the message's begin; nothing at the end, or
  // if there is no valid field.
  std::optional<WireField> Next(WireRange& message);
  // Returns the first kMaxText bytes of a text, which are more than any path has.
  std::string Text(const WireRange& range);

  // Whether a field extended beyond the end of the file.
  bool is_cut_off() const { return is_cut_off_; }
  bool is_malformed() const { return is_malformed_; }

  static constexpr size_t kMaxText = 4096;

 private:
  static constexpr size_t kWindow = size_t{64} << 10;

  bool Byte(uint64_t at, uint8_t& byte);
  bool Varint(WireRange& message, uint64_t& value);
  std::optional<WireField> Fail(bool cut_off);

  const int fd_;
  const uint64_t size_;
  std::vector<char> window_;
  WireRange in_window_;
  bool is_cut_off_ = false;
  bool is_malformed_ = false;
};

}  // namespace nereid::onnxruntime
