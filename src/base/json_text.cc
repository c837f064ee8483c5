// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace nereid::base {
namespace {

// Decimal points stay within this many digits; beyond it the exponent form is shorter to read.
constexpr int kMaxPlainDigits = 21;
constexpr int kMinPlainExponent = -6;
// Between these, a plain number has its shortest digits and needs no padding with zeros.
constexpr double kLeastPlain = 1e-6;
constexpr double kPlainBelow = 1e15;

// The significant digits of a finite positive double and the power of ten of the first one.
struct Digits {
  char text[20];
  int count = 0;
  int exponent = 0;
};

Digits ShortestDigits(double value) {
  char scientific[40];
  const auto end =
      std::to_chars(scientific, scientific + sizeof(scientific), value, std::chars_format::scientific)
          .ptr;
  Digits digits;
  const char* at = scientific;
  for (; at != end && *at != 'e'; ++at) {
    if (*at != '.') digits.text[digits.count++] = *at;
  }
  *end = '\0';
  digits.exponent = std::atoi(at + 1);
  // "1.50e3" never happens, but "1e3" has no point at all: nothing to strip but a lone zero.
  while (digits.count > 1 && digits.text[digits.count - 1] == '0') --digits.count;
  return digits;
}

}  // namespace

void AppendJsonDouble(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::signbit(value)) {
    out += '-';
    value = -value;
  }
  if (std::isinf(value)) {
    out += "Infinity";
    return;
  }
  if (value == 0) {
    out += "0.0";
    return;
  }
  if (value >= kLeastPlain && value < kPlainBelow) {
    // By far the most numbers: the shortest digits without an exponent, in one piece.
    char text[40];
    char* end = nullptr;
    if (const auto whole = static_cast<int64_t>(value); static_cast<double>(whole) == value) {
      end = std::to_chars(text, text + sizeof(text), whole).ptr;
      *end++ = '.';
      *end++ = '0';
    } else {
      end = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed).ptr;
    }
    out.append(text, end);
    return;
  }
  const Digits digits = ShortestDigits(value);
  const size_t count = static_cast<size_t>(digits.count);
  const int point = digits.exponent + 1;  // digits before the decimal point
  if (digits.count <= point && point <= kMaxPlainDigits) {
    out.append(digits.text, count);
    out.append(static_cast<size_t>(point - digits.count), '0');
    out += ".0";
  } else if (0 < point && point <= kMaxPlainDigits) {
    out.append(digits.text, static_cast<size_t>(point));
    out += '.';
    out.append(digits.text + point, count - static_cast<size_t>(point));
  } else if (kMinPlainExponent < point && point <= 0) {
    out += "0.";
    out.append(static_cast<size_t>(-point), '0');
    out.append(digits.text, count);
  } else {
    out += digits.text[0];
    if (count > 1) {
      out += '.';
      out.append(digits.text + 1, count - 1);
    }
    out += 'e';
    AppendJsonInteger(out, digits.exponent);
  }
}

void AppendJsonString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  out += '"';
  size_t plain = 0;  // where the run of bytes that need no escape began
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') [[likely]] continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
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
