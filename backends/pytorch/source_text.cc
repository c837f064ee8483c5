// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/source_text.h"

#include <algorithm>
#include <charconv>

namespace nereid::pytorch {

std::optional<std::string_view> After(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? std::optional(text.substr(prefix.size())) : std::nullopt;
}

std::optional<std::string_view> Between(std::string_view text, std::string_view open,
                                        std::string_view close) {
  const size_t start = text.find(open);
  if (start == text.npos) {
    return std::nullopt;
  }
  text.remove_prefix(start + open.size());
  const size_t end = text.find(close);
  return end == text.npos ? std::nullopt : std::optional(text.substr(0, end));
}

std::optional<int64_t> Number(std::string_view text) {
  while (!text.empty() && text.back() == 'L') {
    text.remove_suffix(1);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty()
             ? std::optional(number)
             : std::nullopt;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> Split(std::string_view list) {
  std::vector<std::string_view> elements;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (const std::string_view element = Trimmed(list.substr(0, comma)); !element.empty()) {
      elements.push_back(element);
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return elements;
}

}  // namespace nereid::pytorch
