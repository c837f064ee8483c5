// SPDX-License-Identifier: Apache-2.0
// Readers for the values of flags. Errors say what was expected; the caller names the flag.
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

// Of the number of a port.
inline constexpr std::string_view kExpectedPort =
    "expected a port from 0 to 65535, where 0 takes any free one";

// true|on|1 and false|off|0 in any case.
base::Result<bool> ReadBool(std::string_view text);

// A whole decimal number from `least` to `most`.
base::Result<int64_t> ReadInteger(std::string_view text, int64_t least,
                                  int64_t most = std::numeric_limits<int64_t>::max());

// Which of `choices` it is, in any case.
base::Result<size_t> ReadChoice(std::string_view text, std::span<const std::string_view> choices);

// "first<separator>second"; an error when there is no separator or `first` is empty.
base::Result<std::pair<std::string, std::string>> ReadPair(std::string_view text, char separator);

}  // namespace nereid::app
