// SPDX-License-Identifier: Apache-2.0
#include "object_store/endpoint.h"

#include "http_client/url.h"

namespace nereid::object_store {

bool IsConfidential(const std::string& endpoint) {
  const auto url = http_client::ParseUrl(endpoint);
  if (!url.ok()) return false;
  // A name such as 127.0.0.1.example.com is somebody else's.
  const bool is_address = url->host.find_first_not_of("0123456789.") == std::string::npos;
  return url->is_tls || url->host == "localhost" || url->host == "::1" ||
         (is_address && url->host.starts_with("127."));
}

}  // namespace nereid::object_store
