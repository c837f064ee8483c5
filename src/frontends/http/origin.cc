// SPDX-License-Identifier: Apache-2.0
#include "http/origin.h"

#include <algorithm>
#include <string_view>

namespace nereid::http {
namespace {

constexpr std::string_view kSchemeEnd = "://";

// Returns "host:port" of "https://host:port"; empty for an origin without a host, such as "null".
std::string_view AuthorityOf(std::string_view origin) {
  const size_t at = origin.find(kSchemeEnd);
  return at == std::string_view::npos ? std::string_view() : origin.substr(at + kSchemeEnd.size());
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Compares names of hosts, whose case does not count.
bool SameText(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

// Returns the host of "host:port".
std::string_view HostOf(std::string_view authority) {
  return authority.substr(0, authority.find(':'));
}

// Returns whether the host of "host:port" cannot be a public name: it is an address, a name without
// a dot, or one of this machine.
bool IsPrivateName(std::string_view authority) {
  if (authority.starts_with('[')) return true;
  const std::string_view host = HostOf(authority);
  const size_t dot = host.rfind('.');
  if (dot == std::string_view::npos) return true;
  const std::string_view end = host.substr(dot + 1);
  // No top-level domain consists of digits.
  return SameText(end, "localhost") ||
         (!end.empty() && std::ranges::all_of(end, [](char c) { return c >= '0' && c <= '9'; }));
}

// Whether "host:port" can only lead to this server, or to where nobody else decides.
bool IsTrusted(std::string_view authority, const std::vector<std::string>& own_names) {
  return IsPrivateName(authority) ||
         std::ranges::any_of(own_names, [host = HostOf(authority)](const std::string& name) {
           return SameText(name, host);
         });
}

}  // namespace

std::vector<std::string> OwnNames(std::string_view address,
                                  const std::vector<std::string>& origins) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view authority) {
    if (authority.empty() || IsPrivateName(authority)) return;
    std::string& name = names.emplace_back(HostOf(authority));
    std::ranges::transform(name, name.begin(), Lower);
  };
  add(address);
  for (const std::string& origin : origins) add(AuthorityOf(origin));
  return names;
}

std::string RefuseOrigin(const http1::HttpHead& head, bool asks_for_keys,
                         const std::vector<std::string>& own_names) {
  const std::string_view origin = head.Header("Origin");
  // What the browser itself knows of the page and of this server; sent over TLS and to this machine
  // only.
  const std::string_view site = head.Header("Sec-Fetch-Site");
  const bool is_vouched_for = site == "same-origin" || site == "none";
  if (origin.empty() && (site.empty() || is_vouched_for)) return {};
  const std::string_view authority = AuthorityOf(origin);
  const bool is_own = site.empty() ? SameText(authority, head.Header("Host")) : is_vouched_for;
  if (!is_own) {
    return "a page of another site (" + std::string(origin.empty() ? site : origin) +
           ") may not change this server; --http-cors-allow-origin permits pages of an origin";
  }
  if (!asks_for_keys && !origin.empty() && !IsTrusted(authority, own_names)) {
    return "without --api-keys, pages may change this server only if they were loaded from an "
           "address or a name without dots, and not from '" +
           std::string(authority) + "'; --http-cors-allow-origin permits pages of an origin";
  }
  return {};
}

std::string RefusePublicHost(const http1::HttpHead& head, bool asks_for_keys,
                             const std::vector<std::string>& own_names) {
  const std::string_view host = head.Header("Host");
  if (asks_for_keys || IsTrusted(host, own_names)) return {};
  return "without --api-keys, this is shown only under an address, a name without dots or a name "
         "that the server was started with, and not under '" +
         std::string(host) +
         "': whoever owns a public name could let it point to this server (DNS rebinding). Open "
         "the page under the server's IP address, or start the server with --api-keys=FILE, or "
         "with --http-cors-allow-origin and the origin of this page if the name is yours";
}

}  // namespace nereid::http
