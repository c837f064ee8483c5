// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace nereid::base {
namespace {

// A longer text is not a misspelt name, and comparing it would take time quadratic in its length.
constexpr size_t kMaxComparedLength = 256;
constexpr size_t kMinPartLength = 3;
constexpr size_t kMaxListed = 10;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The number of insertions, deletions and replacements that turn one text into the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool IsPart(std::string_view a, std::string_view b) {
  const auto [shorter, longer] =
      std::minmax(a, b, [](auto x, auto y) { return x.size() < y.size(); });
  return shorter.size() >= kMinPartLength && longer.starts_with(shorter);
}

}  // namespace

std::string_view NearestName(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > kMaxComparedLength) return {};
  const std::string lower = Lower(name);
  std::string_view nearest;
  // At most a third of the characters may differ, or two if the name is short, but never more than
  // half.
  size_t least = std::min(std::max<size_t>(name.size() / 3, 2), name.size() / 2) + 1;
  for (const std::string_view candidate : names) {
    if (candidate.size() > kMaxComparedLength) continue;
    const size_t distance = EditDistance(lower, Lower(candidate));
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  if (!nearest.empty()) return nearest;
  for (const std::string_view candidate : names) {
    if (IsPart(lower, Lower(candidate)) && candidate.size() > nearest.size()) nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view nearest = NearestName(name, names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

std::string QuotedList(std::span<const std::string_view> names) {
  const size_t shown = std::min(names.size(), kMaxListed);
  std::string list;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) list += i + 1 == names.size() ? " and " : ", ";
    list += fmt::format("'{}'", names[i]);
  }
  if (shown < names.size()) list += fmt::format(" and {} more", names.size() - shown);
  return list;
}

}  // namespace nereid::base
