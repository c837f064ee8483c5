// SPDX-License-Identifier: Apache-2.0
#include "azure/http_date.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace nereid::azure {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Reads digits that fill `text`.
bool Read(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

}  // namespace

std::string HttpDate(std::time_t time) {
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<size_t>(utc.tm_wday)], utc.tm_mday,
                     kMonths[static_cast<size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  std::tm utc{};
  while (utc.tm_mon < 12 && kMonths[static_cast<size_t>(utc.tm_mon)] != text.substr(8, 3)) {
    ++utc.tm_mon;
  }
  if (utc.tm_mon == 12 || !Read(text.substr(5, 2), utc.tm_mday) ||
      !Read(text.substr(12, 4), utc.tm_year) || !Read(text.substr(17, 2), utc.tm_hour) ||
      !Read(text.substr(20, 2), utc.tm_min) || !Read(text.substr(23, 2), utc.tm_sec)) {
    return std::nullopt;
  }
  if (utc.tm_year < 1970 || utc.tm_year > 2200) return std::nullopt;
  utc.tm_year -= 1900;
  return static_cast<int64_t>(::timegm(&utc)) * 1'000'000'000;
}

}  // namespace nereid::azure
