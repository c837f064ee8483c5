// SPDX-License-Identifier: Apache-2.0
// Doubles that JSON readers round themselves are read again here: RapidJSON's fast mode is wrong in
// the last digits, and its exact mode (kParseFullPrecisionFlag, in 1.1) for a zero with many digits
// and for some exponents beyond 22.
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace nereid::base {

// Returns the exact number that ends at `end` of `text`; `value` if there is none, or if it exceeds
// a double.
inline double ExactNumber(double value, std::string_view text, size_t end) {
  constexpr std::string_view kOfNumbers = "0123456789+-.eE";
  size_t begin = end;
  while (begin > 0 && kOfNumbers.find(text[begin - 1]) != std::string_view::npos) --begin;
  double exact = 0;
  const auto read = std::from_chars(text.data() + begin, text.data() + end, exact);
  return read.ec == std::errc() && read.ptr == text.data() + end ? exact : value;
}

}  // namespace nereid::base
