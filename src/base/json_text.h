// SPDX-License-Identifier: Apache-2.0
// Appends values to a text in the JSON spelling that Triton's clients know: 1.0 and 1e-7 for
// doubles (a float is widened first), NaN and Infinity as bare words, only the escapes that JSON
// demands.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace nereid::base {

// Appends the shortest digits that read back as the same double, always with a fraction or an
// exponent.
void AppendJsonDouble(std::string& out, double value);

// Like AppendJsonDouble, but writes to `out` and returns the end. REQUIRES: `out` has room for
// kMaxJsonDouble characters.
inline constexpr size_t kMaxJsonDouble = 40;
char* WriteJsonDouble(double value, char* out);

// Appends `text` in quotes. Bytes that are not valid UTF-8 are copied unchanged.
void AppendJsonString(std::string& out, std::string_view text);

inline void AppendJsonBool(std::string& out, bool value) { out += value ? "true" : "false"; }

template <std::integral T>
void AppendJsonInteger(std::string& out, T value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

// Returns {"error":"<message>"}.
std::string JsonError(std::string_view message);

}  // namespace nereid::base
