// SPDX-License-Identifier: Apache-2.0
#include "app/flag_values.h"

#include <strings.h>

#include <algorithm>

#include <fmt/core.h>

#include "base/nearest_name.h"

namespace nereid::app {
namespace {

bool IsAnyOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
  });
}

}  // namespace

base::Result<bool> ReadBool(std::string_view text) {
  if (IsAnyOf(text, {"true", "on", "1"})) return true;
  if (IsAnyOf(text, {"false", "off", "0"})) return false;
  return base::InvalidArgumentError("expected true or false");
}

base::Result<int64_t> ReadInteger(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min && value <= max) {
    return value;
  }
  if (min == std::numeric_limits<int64_t>::min()) {
    return base::InvalidArgumentError("expected a whole number");
  }
  return base::InvalidArgumentError(
      max == std::numeric_limits<int64_t>::max()
          ? fmt::format("expected a whole number of at least {}", min)
          : fmt::format("expected a whole number from {} to {}", min, max));
}

base::Result<size_t> ReadChoice(std::string_view text, std::span<const std::string_view> choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (IsAnyOf(text, {choices[i]})) return i;
  }
  std::string list;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) list += i + 1 == choices.size() ? " or " : ", ";
    list += choices[i];
  }
  return base::InvalidArgumentError(
      fmt::format("expected {}{}", list, base::DidYouMean(text, choices)));
}

base::Result<std::pair<std::string, std::string>> ReadPair(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos || at == 0) {
    return base::InvalidArgumentError(fmt::format("expected <name>{}<value>", separator));
  }
  return std::pair(std::string(text.substr(0, at)), std::string(text.substr(at + 1)));
}

}  // namespace nereid::app
