// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, as much of it as two kinds of file need: NetDef, which is read, and ONNX,
// which is written. Reading stays within the bytes that it was given, whatever they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace nereid::caffe2 {

// A field of a message. Points into the message.
struct WireField {
  // Protobuf's wire types.
  enum class Kind : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint32_t number = 0;
  Kind kind = Kind::kVarint;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a message, text or packed numbers

  // The number as a float; fields of another kind have 0.
  float AsFloat() const;
};

// Reads the fields of one message in order. Thread-compatible.
class WireReader {
 public:
  // `message` outlives the reader and its fields.
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Reads the next field. Returns false at the end and where there is no valid field.
  bool Next(WireField& field);
  // Reads a number without a field around it, as packed fields contain them.
  bool Varint(uint64_t& value);
  bool Fixed32(uint64_t& value);
  bool Fixed64(uint64_t& value);

  bool is_malformed() const { return is_malformed_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  bool Fixed(size_t size, uint64_t& value);
  bool Bytes(std::string_view& bytes);

  std::string_view rest_;
  bool is_malformed_ = false;
};

// A message that is being written. Thread-compatible.
class WireWriter {
 public:
  void Number(uint32_t field, int64_t value);
  void Float(uint32_t field, float value);
  void Bytes(uint32_t field, std::string_view value);
  // Begins a field of `size` bytes, which Append then brings.
  void Header(uint32_t field, uint64_t size);
  void Append(std::string_view bytes) { bytes_ += bytes; }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  void Varint(uint64_t value);

  std::string bytes_;
};

}  // namespace nereid::caffe2
