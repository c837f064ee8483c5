// SPDX-License-Identifier: Apache-2.0
// Builds text in memory that is there already, for signal handlers, which may not allocate.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace nereid::base {

// Text of limited length: what does not fit is cut. Thread-compatible; safe in a signal handler.
class FixedText {
 public:
  explicit FixedText(std::span<char> memory) : memory_(memory) {}

  void Add(std::string_view part) {
    const size_t length = std::min(part.size(), memory_.size() - size_);
    std::memcpy(memory_.data() + size_, part.data(), length);
    size_ += length;
  }
  void AddNumber(int64_t number) { AddDigits(number, 10); }
  void AddHex(uint64_t number) {
    Add("0x");
    AddDigits(number, 16);
  }
  // Adds a name that somebody else chose, in quotes: nothing in it can end a line.
  void AddQuoted(std::string_view name) {
    Add("'");
    for (const char& c : name) {
      const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
      Add(is_plain ? std::string_view(&c, 1) : "?");
    }
    Add("'");
  }

  size_t size() const { return size_; }
  std::string_view view() const { return {memory_.data(), size_}; }

 private:
  template <typename Integer>
  void AddDigits(Integer number, int base) {
    char digits[24];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number, base);
    Add({digits, static_cast<size_t>(end - digits)});
  }

  std::span<char> memory_;
  size_t size_ = 0;
};

}  // namespace nereid::base
