// SPDX-License-Identifier: Apache-2.0
// Addresses of servers, and text in them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::http_client {

// A value type.
struct Url {
  bool is_tls = false;
  std::string host;  // an address of IP version 6 without brackets
  std::string port;
  std::string path;  // with the query; begins with a slash

  std::string ToString() const;
};

// Reads http[s]://host[:port][/path]; without a scheme, http is meant.
base::Result<Url> ParseUrl(std::string_view text);

// `text` as a path or query of a URL needs it, and the signatures of object stores expect it:
// everything but letters, digits and -._~ as %XX; slashes only where they are kept.
std::string PercentEncode(std::string_view text, bool keep_slashes);
// The opposite; a % that no two digits follow stays.
std::string PercentDecode(std::string_view text);

}  // namespace nereid::http_client
