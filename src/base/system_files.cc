// SPDX-License-Identifier: Apache-2.0
#include "base/system_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace nereid::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::optional<std::string> SystemFiles::Text(const std::string& path) const {
  std::ifstream file(root_ + path);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  text.resize(text.find_last_not_of(kSpace) + 1);
  return text;
}

std::optional<uint64_t> SystemFiles::Number(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  return text ? ToNumber(*text) : std::nullopt;
}

std::optional<std::string> SystemFiles::Field(const std::string& path,
                                              std::string_view name) const {
  const std::optional<std::string> text = Text(path);
  if (!text) return std::nullopt;
  for (const std::string_view line : Lines(*text)) {
    if (!line.starts_with(name)) continue;
    const std::string_view rest = line.substr(name.size());
    const size_t end = rest.find_first_not_of(kSpace);
    if (end == std::string_view::npos) return std::string();
    if (rest[end] == ':') return std::string(Trim(rest.substr(end + 1)));
    if (end > 0) return std::string(Trim(rest));
  }
  return std::nullopt;
}

std::vector<std::string> SystemFiles::Names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(root_ + folder, error);
  while (!error && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> SystemFiles::Link(const std::string& path) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ + path, error);
  if (error) return std::nullopt;
  return target.string();
}

bool SystemFiles::Exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(root_ + path, error);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;
       begin = line.find_first_not_of(kSpace, begin)) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::optional<uint64_t> ToNumber(std::string_view text, int base) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace nereid::base
