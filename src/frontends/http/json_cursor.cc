// SPDX-License-Identifier: Apache-2.0
#include "http/json_cursor.h"

#include <fast_float/fast_float.h>

namespace nereid::http {
namespace {

void AppendUtf8(uint32_t character, std::string& out) {
  const auto append = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (character < 0x80) {
    append(character);
    return;
  }
  if (character < 0x800) {
    append(0xC0 | character >> 6);
  } else {
    if (character < 0x10000) {
      append(0xE0 | character >> 12);
    } else {
      append(0xF0 | character >> 18);
      append(0x80 | (character >> 12 & 0x3F));
    }
    append(0x80 | (character >> 6 & 0x3F));
  }
  append(0x80 | (character & 0x3F));
}

// The number of decimal digits that always fit into 64 bits.
constexpr ptrdiff_t kMaxMantissaDigits = 19;

// The powers of ten that a double holds exactly.
constexpr ptrdiff_t kMaxExactPower = 22;
constexpr std::array<double, kMaxExactPower + 1> kPowersOfTen = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Returns the double that is nearest to mantissa / 10^fraction, or nothing if that takes more than
// 64 bits of precision to tell.
std::optional<double> NearestDouble(uint64_t mantissa, ptrdiff_t fraction) {
  const auto nearest =
      fast_float::compute_float<fast_float::binary_format<double>>(-fraction, mantissa);
  if (nearest.power2 < 0) return std::nullopt;
  double number = 0;
  fast_float::to_float(false, nearest, number);
  return number;
}

}  // namespace

// Skips up to a quote, a backslash or a control character.
void JsonCursor::SkipPlainCharacters() {
  static_assert(std::endian::native == std::endian::little,
                "the first character is the lowest byte");
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = kOnes * 0x80;
  while (end_ - next_ >= 8) {
    uint64_t word;
    std::memcpy(&word, next_, sizeof(word));
    const uint64_t quote = word ^ (kOnes * '"');
    const uint64_t backslash = word ^ (kOnes * '\\');
    // The high bit of each byte that is searched for, and of no byte before the first of them.
    const uint64_t found = (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
                            ((word - kOnes * ' ') & ~word)) &
                           kHighBits;
    if (found != 0) {
      next_ += std::countr_zero(found) / 8;
      return;
    }
    next_ += sizeof(word);
  }
  while (next_ != end_ && !EndsText(*next_)) ++next_;
}

// Reads an integer of more digits than are sure to fit, or returns nothing.
std::optional<uint64_t> JsonCursor::LongNumber(const char* begin) const {
  uint64_t number = 0;
  if (begin == next_ || *begin == '0') return std::nullopt;
  return std::from_chars(begin, next_, number).ec == std::errc() ? std::optional(number)
                                                                 : std::nullopt;
}

std::optional<std::string_view> JsonCursor::OtherKey() {
  const auto key = Text();
  return Take(':') ? key : std::nullopt;
}

bool JsonCursor::AppendAnyText(std::string& out) {
  if (!Take('"')) return false;
  for (;;) {
    const char* const begin = next_;
    SkipPlainCharacters();
    out.append(begin, static_cast<size_t>(next_ - begin));
    if (next_ == end_) return false;
    const char c = *next_++;
    if (c == '"') return true;
    if (c != '\\' || !AppendEscape(out)) return false;
  }
}

// Reads what follows a backslash.
bool JsonCursor::AppendEscape(std::string& out) {
  if (next_ == end_) return false;
  static constexpr std::string_view kEscapes = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char c = *next_++;
  if (c != 'u') {
    const size_t index = kEscapes.find(c);
    if (index == kEscapes.npos) return false;
    out += kMeanings[index];
    return true;
  }
  auto character = FourHexDigits();
  if (!character) return false;
  if (*character >= 0xD800 && *character < 0xE000) {
    // The first half of a surrogate pair needs the second.
    if (*character >= 0xDC00 || end_ - next_ < 2 || next_[0] != '\\' || next_[1] != 'u') {
      return false;
    }
    next_ += 2;
    const auto low = FourHexDigits();
    if (!low || *low < 0xDC00 || *low >= 0xE000) return false;
    *character = 0x10000 + ((*character - 0xD800) << 10) + (*low - 0xDC00);
  }
  AppendUtf8(*character, out);
  return true;
}

std::optional<uint32_t> JsonCursor::FourHexDigits() {
  if (end_ - next_ < 4) return std::nullopt;
  uint32_t number = 0;
  const auto read = std::from_chars(next_, next_ + 4, number, 16);
  if (read.ec != std::errc() || read.ptr != next_ + 4) return std::nullopt;
  next_ += 4;
  return number;
}

// Most numbers need one division or one multiplication of 64 bits, which from_chars would precede
// by reading the digits again.
std::optional<double> JsonCursor::AnyDouble() {
  SkipSpace();
  const char* const begin = next_;
  const char* at = begin;
  const bool is_negative = at != end_ && *at == '-';
  if (is_negative) ++at;
  const char* const digits = at;
  uint64_t mantissa = 0;
  const auto take_digits = [&] {
    for (; at != end_; ++at) {
      const unsigned digit = DigitOf(*at);
      if (digit > 9) break;
      mantissa = mantissa * 10 + digit;
    }
  };
  take_digits();
  ptrdiff_t count = at - digits;
  if (count == 0 || (count > 1 && *digits == '0')) return std::nullopt;
  ptrdiff_t fraction = 0;
  if (at != end_ && *at == '.') {
    const char* const point = at++;
    take_digits();
    fraction = at - point - 1;
    count += fraction;
    if (fraction == 0) return std::nullopt;
  } else if (mantissa == 0 && count == 1) {
    // "-0" is an integer, so it has no sign.
    if (at == end_ || (*at != 'e' && *at != 'E')) {
      next_ = at;
      return 0.0;
    }
  }
  const bool has_exponent = at != end_ && (*at == 'e' || *at == 'E');
  if (count <= kMaxMantissaDigits && !has_exponent) [[likely]] {
    if (mantissa <= uint64_t{1} << 53 && fraction <= kMaxExactPower) [[likely]] {
      next_ = at;
      // Both are exact, so one division rounds once.
      const double exact = static_cast<double>(static_cast<int64_t>(mantissa)) /
                           kPowersOfTen[static_cast<size_t>(fraction)];
      return is_negative ? -exact : exact;
    }
    // Python prints 32-bit numbers with up to 17 digits.
    if (const auto nearest = NearestDouble(mantissa, fraction)) {
      next_ = at;
      return is_negative ? -*nearest : *nearest;
    }
  }
  double number = 0;
  const auto read = std::from_chars(begin, end_, number);
  if (read.ec != std::errc()) return std::nullopt;
  // A zero may have any exponent here, but RapidJSON refuses those that no other number can have.
  constexpr ptrdiff_t kUsualExponent = 3;  // such as "e22"
  if (mantissa == 0 && read.ptr - at > kUsualExponent) return std::nullopt;
  next_ = read.ptr;
  return number;
}

bool JsonCursor::SkipNested(int depth) {
  if (depth >= kMaxDepth) return false;
  switch (Peek()) {
    case '{':
      return Object<>([&](int, std::string_view) { return SkipNested(depth + 1); });
    case '[':
      return Array([&] { return SkipNested(depth + 1); });
    case '"':
      return Text().has_value();
    case 't':
    case 'f':
      return Flag().has_value();
    case 'n': {
      const bool is_null =
          std::string_view(next_, static_cast<size_t>(end_ - next_)).starts_with("null");
      next_ += is_null ? 4 : 0;
      return is_null;
    }
    default:
      return Double().has_value();
  }
}

}  // namespace nereid::http
