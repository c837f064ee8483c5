// SPDX-License-Identifier: Apache-2.0
#include "base/text_encodings.h"

#include <cstdint>

namespace nereid::base {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Returns -1 for a character outside the alphabet.
int ValueOf(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

}  // namespace

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string EncodeBase64Url(std::string_view bytes) {
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (count += 8; count >= 6;) text += kAlphabet[bits >> (count -= 6) & 63];
  }
  if (count > 0) text += kAlphabet[bits << (6 - count) & 63];
  return text;
}

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = ValueOf(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffff;
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  // The bits that are left over belong to no byte.
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace nereid::base
