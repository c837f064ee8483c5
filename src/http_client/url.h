// SPDX-License-Identifier: Apache-2.0
// URLs, and the encoding of text in them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::http_client {

// The parts of a URL. A value type.
struct Url {
  bool is_tls = false;
  std::string host;  // an IPv6 address without brackets
  std::string port;
  std::string path;  // with the query; begins with a slash

  std::string ToString() const;
};

// Reads http[s]://host[:port][/path]. The default scheme is http.
base::Result<Url> ParseUrl(std::string_view text);

// Encodes `text` for a path or query of a URL, as the signatures of object stores require it:
// everything except letters, digits and -._~ becomes %XX. Slashes are kept if `keep_slashes`.
std::string PercentEncode(std::string_view text, bool keep_slashes);
// Reverses PercentEncode. A % without two hexadecimal digits after it stays.
std::string PercentDecode(std::string_view text);

}  // namespace nereid::http_client
