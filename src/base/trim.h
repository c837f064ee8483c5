// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace nereid::base {

// Returns `text` without the characters of `blanks` at its ends.
constexpr std::string_view Trim(std::string_view text, std::string_view blanks) {
  // Quicker than find_first_not_of, which calls memchr for each character.
  const auto is_blank = [blanks](char character) {
    for (const char blank : blanks) {
      if (character == blank) return true;
    }
    return false;
  };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace nereid::base
