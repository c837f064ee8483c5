// SPDX-License-Identifier: Apache-2.0
#include "http_client/url.h"

#include <algorithm>

#include <fmt/format.h>

namespace nereid::http_client {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Url::ToString() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}{}", is_tls ? "https" : "http", is_v6 ? "[" : "", host,
                     is_v6 ? "]" : "", port, path);
}

base::Result<Url> ParseUrl(std::string_view text) {
  std::string_view rest = text;
  Url url;
  url.is_tls = rest.starts_with("https://");
  if (rest.starts_with("http://") || url.is_tls) rest.remove_prefix(url.is_tls ? 8 : 7);
  const size_t slash = rest.find('/');
  url.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  std::string_view host = rest.substr(0, slash);
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && !host.ends_with(']');
  url.port = has_port ? host.substr(colon + 1) : url.is_tls ? "443" : "80";
  host = has_port ? host.substr(0, colon) : host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  url.host = host;
  const bool is_number = !url.port.empty() && std::ranges::all_of(url.port, IsDigit);
  const bool is_clean = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
  if (url.host.empty() || !is_number || !is_clean) {
    return base::InvalidArgumentError(
        fmt::format("expected http[s]://<host>:<port>/<path>, got: {}", text));
  }
  return url;
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

}  // namespace nereid::http_client
