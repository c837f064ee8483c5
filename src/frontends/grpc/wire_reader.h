// SPDX-License-Identifier: Apache-2.0
// Reads protobuf's wire format from untrusted bytes. Every read is bounds-checked; after a
// malformed field `failed()` stays true and every later read returns zero, so callers check once.
// It accepts exactly what protobuf's own C++ parser accepts.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace nereid::grpc {

static_assert(std::endian::native == std::endian::little, "fixed-size values are read in place");

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// The tag in front of every field of a protobuf message.
struct WireTag {
  uint32_t field = 0;
  WireType type = WireType::kVarint;

  bool Is(uint32_t wanted_field, WireType wanted_type) const {
    return field == wanted_field && type == wanted_type;
  }
};

// Thread-compatible; the bytes outlive it.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool failed() const { return failed_; }
  bool at_end() const { return next_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - next_); }

  // Moves to the next field. Returns false at the end and on failure.
  bool Next(WireTag* tag) {
    if (next_ == end_) return false;
    const auto value = static_cast<uint32_t>(ReadShortVarint());
    tag->field = value >> 3;
    const auto type = static_cast<uint8_t>(value & 7);
    if (type > 5 || tag->field == 0) Fail();
    tag->type = static_cast<WireType>(type);
    return !failed_;
  }

  uint64_t ReadVarint() {
    if (next_ < end_ && static_cast<uint8_t>(*next_) < 0x80) return static_cast<uint8_t>(*next_++);
    return ReadLongVarint(10);
  }
  uint32_t ReadFixed32() { return ReadFixed<uint32_t>(); }
  uint64_t ReadFixed64() { return ReadFixed<uint64_t>(); }
  std::string_view ReadBytes() {
    const uint64_t size = ReadShortVarint();
    if (failed_ || size > left() || size > INT32_MAX) {
      Fail();
      return {};
    }
    const std::string_view bytes(next_, static_cast<size_t>(size));
    next_ += size;
    return bytes;
  }
  // Reads a string field, which must be valid UTF-8.
  std::string_view ReadText();
  // Skips the value of an unknown field.
  void Skip(WireTag tag) { SkipNested(tag, 0); }

  void Fail() {
    failed_ = true;
    next_ = end_;
  }

 private:
  // Reads tags (truncated to 32 bits) and lengths: up to five bytes.
  uint64_t ReadShortVarint() {
    if (next_ < end_ && static_cast<uint8_t>(*next_) < 0x80) return static_cast<uint8_t>(*next_++);
    return ReadLongVarint(5);
  }
  uint64_t ReadLongVarint(int max_bytes);
  void SkipNested(WireTag tag, int depth);
  template <typename T>
  T ReadFixed() {
    T value = 0;
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, next_, sizeof(T));
    next_ += sizeof(T);
    return value;
  }

  const char* next_;
  const char* end_;
  bool failed_ = false;
};

}  // namespace nereid::grpc
