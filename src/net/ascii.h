// SPDX-License-Identifier: Apache-2.0
// Case-insensitive comparison as protocols define it: ASCII only, whatever the locale.
#pragma once

#include <cstring>
#include <string_view>

namespace nereid::net {

constexpr bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

constexpr char LowerCase(char c) { return static_cast<char>(IsCapital(c) ? c + ('a' - 'A') : c); }

inline bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return true;  // nearly always
  for (size_t i = 0; i < a.size(); ++i) {
    if (LowerCase(a[i]) != LowerCase(b[i])) return false;
  }
  return true;
}

}  // namespace nereid::net
