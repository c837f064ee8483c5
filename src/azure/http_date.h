// SPDX-License-Identifier: Apache-2.0
// Dates as in headers of HTTP. The C library's functions would use the language of a program that
// embeds the server.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace nereid::azure {

// Returns "Fri, 26 Jun 2015 23:39:12 GMT".
std::string HttpDate(std::time_t time);
// Reads such a date as nanoseconds since 1970; returns nothing for anything else.
std::optional<int64_t> ParseHttpDate(std::string_view text);

}  // namespace nereid::azure
