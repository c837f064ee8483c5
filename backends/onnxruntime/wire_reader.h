// SPDX-License-Identifier: Apache-2.0
// Reads the fields of protobuf messages in a file of any size through a small window, so that the
// large ones cost nothing.
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

// Thread-compatible. `fd` stays the caller's.
class WireReader {
 public:
  WireReader(int fd, uint64_t size) : fd_(fd), size_(size), window_(kWindow) {}

  WireRange whole() const { return {0, size_}; }
  // The next field of the message, whose beginning moves behind it; nothing at its end, or when
  // what follows is no field.
  std::optional<WireField> Next(WireRange& message);
  // The first kMaxText bytes of a text, which is longer than any path.
  std::string Text(const WireRange& range);

  // A field of the file was longer than the file.
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
