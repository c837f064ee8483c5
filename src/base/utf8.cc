// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nereid::base {
namespace {

bool IsContinuation(unsigned char c) { return (c & 0xC0) == 0x80; }

// Returns the number of bytes of the well-formed character (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF) at `p`, 0 if there is none.
size_t CharacterSize(const unsigned char* p, size_t left) {
  if (p[0] < 0x80) return 1;
  if (p[0] < 0xC2) return 0;
  if (p[0] < 0xE0) return left >= 2 && IsContinuation(p[1]) ? 2 : 0;
  if (p[0] < 0xF0) {
    if (left < 3 || !IsContinuation(p[1]) || !IsContinuation(p[2])) return 0;
    if (p[0] == 0xE0 && p[1] < 0xA0) return 0;
    if (p[0] == 0xED && p[1] > 0x9F) return 0;
    return 3;
  }
  if (p[0] > 0xF4 || left < 4) return 0;
  if (!IsContinuation(p[1]) || !IsContinuation(p[2]) || !IsContinuation(p[3])) return 0;
  if (p[0] == 0xF0 && p[1] < 0x90) return 0;
  if (p[0] == 0xF4 && p[1] > 0x8F) return 0;
  return 4;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t left = text.size();
  while (left >= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    if (word & 0x8080808080808080u) break;
    p += 8;
    left -= 8;
  }
  while (left > 0) {
    const size_t size = CharacterSize(p, left);
    if (size == 0) return false;
    p += size;
    left -= size;
  }
  return true;
}

}  // namespace nereid::base
