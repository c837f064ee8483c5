// SPDX-License-Identifier: Apache-2.0
#include "cli/printable.h"

#include <cstddef>

namespace nereid::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned char ByteAt(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Returns the bytes of the character at the beginning of the text, 0 if there is none.
size_t CharacterSize(std::string_view text) {
  const unsigned char first = ByteAt(text, 0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((ByteAt(text, i) & 0xC0) != 0x80) return 0;
  }
  // Too long a form of a smaller character, a surrogate, or beyond U+10FFFF.
  const unsigned char second = ByteAt(text, 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return size;
}

// Whether the character is one of those that terminals obey: C0, DEL and, from U+0080 on, C1.
bool IsControl(std::string_view character) {
  const unsigned char first = ByteAt(character, 0);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && ByteAt(character, 1) < 0xA0;
}

template <typename AppendCharacter>
void ForEachCharacter(std::string_view text, std::string& out, AppendCharacter&& append) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) {
      out += kReplacement;
    } else {
      append(text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string out;
  ForEachCharacter(text, out, [&](std::string_view character) { out += character; });
  return out;
}

std::string Printable(std::string_view text) {
  std::string out;
  ForEachCharacter(text, out, [&](std::string_view character) {
    if (character == "\n" || character == "\t") {
      out += ' ';
    } else {
      out += IsControl(character) ? kReplacement : character;
    }
  });
  return out;
}

}  // namespace nereid::cli
