// SPDX-License-Identifier: Apache-2.0
// Numbers for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::cli {

// "850 ns", "12.3 us", "4.56 ms", "1.23 s": three digits that count.
std::string FormatNanoseconds(double ns);

// Three digits that count below a thousand, none behind the point above: "0.25", "12.5", "4321".
std::string FormatRate(double rate);

// "1 model", "2 models".
std::string Counted(size_t count, std::string_view noun);

// "5s", "12m", "3h", "4d".
std::string FormatAge(int64_t seconds);

}  // namespace nereid::cli
