// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_wire.h"

#include <algorithm>

namespace nereid::http2 {

std::optional<std::chrono::nanoseconds> ParseGrpcTimeout(std::string_view value) {
  if (value.size() < 2 || value.size() > 9) return std::nullopt;
  int64_t amount = 0;
  for (const char c : value.substr(0, value.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    amount = amount * 10 + (c - '0');
  }
  // The maximum, 99,999,999 hours, does not fit 64 bits as nanoseconds.
  constexpr int64_t kMaxHours = 2'000'000;
  switch (value.back()) {
    case 'H':
      return std::chrono::hours(amount < kMaxHours ? amount : kMaxHours);
    case 'M':
      return std::chrono::minutes(amount);
    case 'S':
      return std::chrono::seconds(amount);
    case 'm':
      return std::chrono::milliseconds(amount);
    case 'u':
      return std::chrono::microseconds(amount);
    case 'n':
      return std::chrono::nanoseconds(amount);
    default:
      return std::nullopt;
  }
}

std::string PercentEncode(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  // The first byte of a character has up to three after it. What claims more is not UTF-8, and is
  // cut anywhere.
  constexpr size_t kMaxCharacter = 4 * 3;
  std::string encoded;
  encoded.reserve(std::min(text.size(), max_bytes));
  size_t character = 0;  // where in `encoded` the last one begins
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = c >= ' ' && c <= '~' && c != '%';
    const bool continues = (byte & 0xc0) == 0x80;
    if (!continues || encoded.size() - character >= kMaxCharacter) character = encoded.size();
    if (encoded.size() + (is_plain ? 1 : 3) > max_bytes) {
      encoded.resize(character);
      break;
    }
    if (is_plain) {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += kHex[byte >> 4];
    encoded += kHex[byte & 15];
  }
  return encoded;
}

bool IsGrpcContentType(std::string_view value) {
  constexpr std::string_view kType = "application/grpc";
  if (!value.starts_with(kType)) return false;
  return value.size() == kType.size() || value[kType.size()] == '+' || value[kType.size()] == ';';
}

bool ListContains(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item == word) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace nereid::http2
