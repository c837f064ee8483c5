// SPDX-License-Identifier: Apache-2.0
// Parsers for the values of flags. Errors say what was expected; the caller names the flag.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace nereid::app {

// What the help calls the value of a flag.
inline constexpr std::string_view kBool = "<boolean>";
inline constexpr std::string_view kInteger = "<integer>";
inline constexpr std::string_view kString = "<string>";

// The expectation for a port number.
inline constexpr std::string_view kExpectedPort =
    "expected a port from 0 to 65535, where 0 takes any free one";

// Parses true|on|1 and false|off|0 in any case.
base::Result<bool> ReadBool(std::string_view text);

// Parses a decimal integer from `min` to `max`.
base::Result<int64_t> ReadInteger(std::string_view text, int64_t min,
                                  int64_t max = std::numeric_limits<int64_t>::max());

// Returns the index of the choice, compared without regard to case.
base::Result<size_t> ReadChoice(std::string_view text, std::span<const std::string_view> choices);

// Splits "first<separator>second"; fails without a separator or if `first` is empty.
base::Result<std::pair<std::string, std::string>> ReadPair(std::string_view text, char separator);

}  // namespace nereid::app
