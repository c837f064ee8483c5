// SPDX-License-Identifier: Apache-2.0
#include "s3/location.h"

#include <algorithm>

namespace nereid::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// host:port, as opposed to the name of a bucket, in which there is no colon.
bool HasPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  const std::string_view port = text.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), IsDigit);
}

// Takes what stands before the next slash off the front, and the slashes.
std::string_view TakeComponent(std::string_view& text) {
  const size_t end = std::min(text.find('/'), text.size());
  const std::string_view component = text.substr(0, end);
  text.remove_prefix(std::min(text.find_first_not_of('/', end), text.size()));
  return component;
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Location::ToString() const {
  std::string text(kScheme);
  if (!endpoint.empty()) text += endpoint + "/";
  text += bucket;
  if (!key.empty()) text += "/" + key;
  return text;
}

bool IsS3(std::string_view path) { return path.starts_with(kScheme); }

base::Result<Location> ParseLocation(std::string_view path) {
  std::string_view rest = path;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  Location location;
  std::string_view protocol;
  for (const std::string_view known : {"https://", "http://"}) {
    if (!rest.starts_with(known)) continue;
    protocol = known;
    rest.remove_prefix(known.size());
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    break;
  }
  if (!protocol.empty() || HasPort(rest.substr(0, rest.find('/')))) {
    location.endpoint = protocol.empty() ? "http://" : protocol;
    location.endpoint += TakeComponent(rest);
  }
  location.bucket = TakeComponent(rest);
  if (location.bucket.empty()) {
    return base::InternalError("No bucket name found in path: " + std::string(path));
  }
  while (!rest.empty()) {
    if (!location.key.empty()) location.key += '/';
    location.key += TakeComponent(rest);
  }
  return location;
}

std::string PercentEncode(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool is_plain = IsDigit(c) || IsLetter(c) || c == '-' || c == '.' || c == '_' ||
                          c == '~' || (c == '/' && keep_slashes);
    if (is_plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

std::string PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    if (low < 0) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace nereid::s3
