// SPDX-License-Identifier: Apache-2.0
#include "common/restrictions.h"

#include <cctype>
#include <optional>

#include <fmt/core.h>

#include "base/nearest_name.h"

namespace nereid::common {
namespace {

// The names of the categories in the order of the enumeration, as flags spell them.
constexpr std::array<std::string_view, kCategoryCount> kNames = {
    "health",           "metadata",   "inference", "shared-memory", "model-config",
    "model-repository", "statistics", "trace",     "logging"};

std::optional<size_t> FindCategory(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return i;
  }
  return std::nullopt;
}

}  // namespace

bool SameSecret(std::string_view expected, std::string_view presented) {
  // Volatile, so that no compiler may stop the comparison early.
  volatile unsigned char difference = expected.size() == presented.size() ? 0 : 1;
  for (size_t i = 0; i < presented.size(); ++i) {
    const char want = expected.empty() ? '\0' : expected[i % expected.size()];
    difference = difference | static_cast<unsigned char>(want ^ presented[i]);
  }
  return difference == 0;
}

base::Status Restrictions::Add(std::string_view rule, std::string_view flag, std::string_view what,
                               std::string_view key_prefix) {
  const size_t colon = rule.find(':');
  const size_t equals = colon == std::string_view::npos ? colon : rule.find('=', colon + 1);
  if (equals == std::string_view::npos || colon == 0 || equals == colon + 1 ||
      equals + 1 == rule.size()) {
    return base::InvalidArgumentError(
        fmt::format("--{} option format is '<config name>:<setting>=<value>'.", flag));
  }
  const std::string key =
      fmt::format("{}{}", key_prefix, rule.substr(colon + 1, equals - colon - 1));
  std::string lower_key = key;
  for (char& c : lower_key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string_view names = rule.substr(0, colon);
  for (bool more = true; more;) {
    const size_t comma = names.find(',');
    more = comma != std::string_view::npos;
    const std::string_view name = names.substr(0, comma);
    if (more) names.remove_prefix(comma + 1);
    const std::optional<size_t> index = FindCategory(name);
    if (!index) {
      return base::InvalidArgumentError(fmt::format("unknown restricted {} '{}', expected {}{}",
                                                    what, name, base::QuotedList(kNames),
                                                    base::DidYouMean(name, kNames)));
    }
    if (!rules_[*index].key.empty()) {
      return base::InvalidArgumentError(fmt::format(
          "restricted {} '{}' can not be specified in multiple config groups", what, name));
    }
    rules_[*index] = {key, lower_key, std::string(rule.substr(equals + 1))};
  }
  any_ = true;
  return base::OkStatus();
}

}  // namespace nereid::common
