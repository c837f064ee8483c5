// SPDX-License-Identifier: Apache-2.0
#include "http/path_pattern.h"

namespace nereid::http {
namespace {

// Returns the length of the UTF-8 sequence of several bytes at the front of `text`; 0 if there is
// none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool IsLetterOrUnderscore(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Returns the length of the label at the front of `text`; 0 if there is none.
size_t LabelLength(std::string_view text) {
  if (text.empty() || !IsLetterOrUnderscore(text.front())) return 0;
  size_t length = 1;
  while (length < text.size() &&
         (IsLetterOrUnderscore(text[length]) || (text[length] >= '0' && text[length] <= '9') ||
          text[length] == '-' || text[length] == '.')) {
    ++length;
  }
  return length;
}

}  // namespace

// Matches the pattern [^/]+ in UTF-8: one or more characters up to a slash or the end.
bool TakeSegment(std::string_view& path, std::string_view& segment) {
  const char* const begin = path.data();
  const char* const end = begin + path.size();
  const char* at = begin;
  while (at != end && *at != '/') {
    if (static_cast<unsigned char>(*at) < 0x80) [[likely]] {
      ++at;
      continue;
    }
    const size_t character = Utf8Length({at, static_cast<size_t>(end - at)});
    if (character == 0) return false;
    at += character;
  }
  if (at == begin) return false;
  segment = path.substr(0, static_cast<size_t>(at - begin));
  path.remove_prefix(segment.size());
  return true;
}

bool TakeVersion(std::string_view& path, Route& route) {
  size_t length = 0;
  while (length < path.size() && path.data()[length] >= '0' && path.data()[length] <= '9') ++length;
  if (length == 0) [[unlikely]] {
    length = LabelLength(path);
    route.names_label = true;
  }
  route.version = path.substr(0, length);
  path.remove_prefix(length);
  return length > 0;
}

}  // namespace nereid::http
