// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/path.h"

#include <algorithm>
#include <charconv>

namespace nereid::pytorch {

std::optional<Path> ParsePath(std::string_view name) {
  Path path;
  const size_t bracket = name.find_first_of("[]");
  if (bracket != 0 && !name.empty()) {
    path.emplace_back(name.substr(0, bracket));
  }
  std::string_view rest = bracket == std::string_view::npos ? "" : name.substr(bracket);
  while (!rest.empty()) {
    const size_t end = rest.find(']');
    if (rest.front() != '[' || end == std::string_view::npos || end == 1) {
      return std::nullopt;
    }
    path.emplace_back(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
  }
  return path;
}

std::optional<size_t> ParseIndex(std::string_view text) {
  // Six digits are more than any model has tensors, and cannot overflow.
  constexpr size_t kMaxDigits = 6;
  size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || text.size() > kMaxDigits || error != std::errc() ||
      end != text.data() + text.size()) {
    return std::nullopt;
  }
  return index;
}

std::optional<size_t> IndexOf(std::string_view name) {
  // The first pair of underscores counts, as in Triton.
  const size_t mark = name.find("__");
  return mark == std::string_view::npos ? std::nullopt : ParseIndex(name.substr(mark + 2));
}

int FindName(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::string ToString(const Path& path) {
  std::string text;
  for (const std::string& step : path) {
    text += text.empty() ? step : "[" + step + "]";
  }
  return text;
}

}  // namespace nereid::pytorch
