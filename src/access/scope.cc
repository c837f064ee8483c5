// SPDX-License-Identifier: Apache-2.0
#include "access/scope.h"

#include <algorithm>
#include <array>

#include "base/trim.h"

namespace nereid::access {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kScopeCount> kNames = {
    "health",        "infer",         "metadata",  "metrics",
    "model-control", "shared-memory", "trace-log", "admin"};

}  // namespace

std::string_view ScopeName(Scope scope) { return kNames[static_cast<size_t>(scope)]; }

std::optional<Scope> FindScope(std::string_view name) {
  const auto names = GrantableScopes();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Scope>(found - names.begin() + 1);
}

std::span<const std::string_view> GrantableScopes() { return std::span(kNames).subspan(1); }

// Goes back to the last star only, because an earlier one can take over nothing that it could not.
bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The server ignores blanks around the name of a model that it is to load.
bool ModelPatterns::Allows(std::string_view model) const {
  if (patterns_.empty()) return true;
  model = base::Trim(model, " \t\n\v\f\r");
  return std::ranges::any_of(
      patterns_, [model](const std::string& pattern) { return MatchesPattern(pattern, model); });
}

}  // namespace nereid::access
