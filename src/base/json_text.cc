// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace nereid::base {
namespace {

// Numbers with more digits than this before the point are printed with an exponent, which is
// shorter to read.
constexpr int kMaxPlainDigits = 21;
constexpr int kMinPlainExponent = -6;
// The most digits that the shortest decimal of a double has.
constexpr int kMaxDigits = 17;
// kMaxJsonDouble must hold a sign and digits on both sides of a point, each copied with kMaxDigits
// characters.
static_assert(kMaxJsonDouble >= 1 + (kMaxDigits - 1) + 1 + kMaxDigits);

char* Write(std::string_view text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* WriteZeros(int count, char* out) {
  std::memset(out, '0', static_cast<size_t>(count));
  return out + count;
}

// The texts of 0 to 99, as numbers that a store writes out.
static_assert(std::endian::native == std::endian::little);
constexpr auto kPairs = [] {
  std::array<uint16_t, 100> pairs{};
  for (unsigned i = 0; i < 100; ++i) {
    pairs[i] = static_cast<uint16_t>(('0' + i / 10) | (('0' + i % 10) << 8));
  }
  return pairs;
}();

template <typename T>
void Store(T value, char* out) {
  std::memcpy(out, &value, sizeof value);
}

// Returns the text of a number below 100'000'000, with zeros before it.
uint64_t EightDigits(uint32_t number) {
  const uint32_t high = number / 10'000;
  const uint32_t low = number % 10'000;
  return uint64_t{kPairs[high / 100]} | uint64_t{kPairs[high % 100]} << 16 |
         uint64_t{kPairs[low / 100]} << 32 | uint64_t{kPairs[low % 100]} << 48;
}

// Writes a number of up to eight digits. REQUIRES: `out` has room for 8 characters. The text is
// made in a register: an array would be guarded against overruns, which takes as long as writing
// the number.
char* WriteFew(uint32_t number, char* out) {
  if (number < 100) {
    if (number < 10) {
      *out = static_cast<char>('0' + number);
      return out + 1;
    }
    Store(kPairs[number], out);
    return out + 2;
  }
  const size_t count = 3 + (number >= 1'000) + (number >= 10'000) + (number >= 100'000) +
                       (number >= 1'000'000) + (number >= 10'000'000);
  Store(EightDigits(number) >> (8 * (8 - count)), out);
  return out + count;
}

// Writes `number` and returns the end. REQUIRES: `out` has room for 20 characters. Most doubles
// have 17 digits, and printing one takes a seventh less time with this than with std::to_chars for
// the digits (docs/adr/0006).
char* WriteDigits(uint64_t number, char* out) {
  constexpr uint64_t kEight = 100'000'000;
  if (number < kEight) return WriteFew(static_cast<uint32_t>(number), out);
  const uint64_t high = number / kEight;
  out = high < kEight ? WriteFew(static_cast<uint32_t>(high), out) : WriteDigits(high, out);
  Store(EightDigits(static_cast<uint32_t>(number % kEight)), out);
  return out + 8;
}

// Writes numbers with up to three decimals, as people write them; returns null if `value` is not
// one. REQUIRES: `value` > 0. A decimal of at most 15 digits that reads back as a double is the
// shortest that does.
char* WriteShortNumber(double value, char* out) {
  constexpr double kBelow = 1e12;
  if (value >= kBelow) return nullptr;
  const auto thousandths = static_cast<uint64_t>(value * 1000 + 0.5);
  // Division rounds in the same way as reading a decimal does.
  if (static_cast<double>(thousandths) / 1000 != value) return nullptr;
  out = WriteDigits(thousandths / 1000, out);
  const uint64_t rest = thousandths % 1000;
  out[0] = '.';
  out[1] = static_cast<char>('0' + rest / 100);
  Store(kPairs[rest % 100], out + 2);
  return out + (rest % 10 != 0 ? 4 : rest % 100 != 0 ? 3 : 2);
}

// Writes the shortest decimal that reads back as `value`. REQUIRES: `value` > 0. Not inlined: what
// guards its array would be paid for short numbers, too.
[[gnu::noinline]] char* WriteShortest(double value, char* out) {
  // Digits without trailing zeros.
  const auto number = fmt::detail::dragonbox::to_decimal(value);
  char digits[2 * kMaxDigits] = {};
  const int count = static_cast<int>(WriteDigits(number.significand, digits) - digits);
  const int point = count + number.exponent;  // digits before the decimal point
  // Copying a constant number of characters, of which only the first ones count, costs less than
  // calling memcpy.
  const auto take = [&digits, &out](int begin, int end) {
    std::memcpy(out, digits + begin, kMaxDigits);
    out += end - begin;
  };
  if (0 < point && point <= kMaxPlainDigits) {
    take(0, std::min(count, point));
    if (count <= point) return Write(".0", WriteZeros(point - count, out));
    *out++ = '.';
    take(point, count);
    return out;
  }
  if (kMinPlainExponent < point && point <= 0) {
    constexpr std::string_view kZeros = "0.00000";
    static_assert(kZeros.size() == 2 - (kMinPlainExponent + 1));
    Write(kZeros, out);
    out += 2 - point;
    take(0, count);
    return out;
  }
  take(0, 1);
  if (count > 1) {
    *out++ = '.';
    take(1, count);
  }
  *out++ = 'e';
  if (point - 1 < 0) *out++ = '-';
  return WriteDigits(static_cast<uint64_t>(std::abs(point - 1)), out);
}

// Returns the position of the first byte from `at` on that a JSON string cannot have as it is, or
// the size of `text`.
size_t FindEscaped(std::string_view text, size_t at) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHigh = 0x80 * kOnes;
  for (; text.size() - at >= 8; at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    const uint64_t below_space = eight - 0x20 * kOnes;
    const uint64_t is_quote = (eight ^ '"' * kOnes) - kOnes;
    const uint64_t is_backslash = (eight ^ '\\' * kOnes) - kOnes;
    // The subtractions borrow from the next byte only where a byte is one of those looked for.
    if (((below_space | is_quote | is_backslash) & ~eight & kHigh) != 0) break;
  }
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == '"' || c == '\\') break;
  }
  return at;
}

}  // namespace

char* WriteJsonDouble(double value, char* out) {
  if (std::isnan(value)) return Write("NaN", out);
  if (std::signbit(value)) {
    *out++ = '-';
    value = -value;
  }
  if (std::isinf(value)) return Write("Infinity", out);
  if (value == 0) return Write("0.0", out);
  char* const end = WriteShortNumber(value, out);
  return end != nullptr ? end : WriteShortest(value, out);
}

void AppendJsonDouble(std::string& out, double value) {
  char text[kMaxJsonDouble];
  out.append(text, WriteJsonDouble(value, text));
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  out += '"';
  size_t plain = 0;  // start of the current run of bytes that need no escape
  for (size_t i = FindEscaped(text, 0); i < text.size(); i = FindEscaped(text, plain)) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(text, plain);
  out += '"';
}

std::string JsonError(std::string_view message) {
  std::string out = "{\"error\":";
  AppendJsonString(out, message);
  out += '}';
  return out;
}

}  // namespace nereid::base
